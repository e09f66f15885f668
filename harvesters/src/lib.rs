//! Session logs of coding agents, read into sessions.
