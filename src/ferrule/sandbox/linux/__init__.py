"""The Linux system calls that contain a process, each as a short function; nothing here knows of Python or shells.

Imported in the zygote before anything else is loaded, so these modules take the standard library alone, and little.
"""
