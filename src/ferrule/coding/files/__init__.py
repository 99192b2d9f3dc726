"""The file tools: read, write, edit and patch files of a workspace, each change whole or not at all."""
