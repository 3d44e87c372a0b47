// Ctrl-C in a wait: Python's own signal handlers run in it, and what they raise comes out of it.
#pragma once

namespace pwpy {

/// Lets Python's signal handlers run in the waits of this thread, if it is the one where Python runs them. To
/// be called before anything waits.
void watch_signals();

/// Runs the signal handlers that are due, if this is that thread.
void run_signal_handlers();

/// Whether a signal handler has raised something in a wait of this thread that Python has not seen yet.
bool interrupted();

/// Gives that back to Python, as the error under way; false when there is none. With the interpreter's lock.
bool restore_interrupt();

}  // namespace pwpy
