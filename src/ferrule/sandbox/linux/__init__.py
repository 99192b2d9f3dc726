"""The Linux system calls that contain a process, each as a short function; nothing here knows of Python or shells.

The zygote imports these modules before anything else, so they use only a small part of the standard library.
"""
