"""The wake wing: heartbeats and reminders, pushed to the agent. Pure."""
