// Ctrl-C in a wait: Python's signal handlers run during waits, and the exceptions that they raise end the
// wait.
#pragma once

namespace pwpy {

/// Lets Python's signal handlers run in the waits of this thread, if it is the thread in which Python runs
/// them. Call it before anything waits.
void watch_signals();

/// Runs the signal handlers that are due, if this is that thread.
void run_signal_handlers();

/// Whether a signal handler has raised an exception in a wait of this thread that Python has not received
/// yet.
bool interrupted();

/// Sets that exception as Python's current error; returns false if there is none. Needs the GIL.
bool restore_interrupt();

}  // namespace pwpy
