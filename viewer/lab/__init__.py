"""The lab: put, load, services, and the plug that can be pulled."""
