#include "interrupts.h"

#include <Python.h>
#include <unistd.h>

#include <utility>

#include "peerway/peerway.h"

namespace pwpy {
namespace {

// The exception that a signal handler raised in the main thread; Python runs signal handlers only there.
PyObject *raised_type = nullptr, *raised = nullptr, *raised_trace = nullptr;

int check(void*) {
  if (raised_type != nullptr) return 1;
  if (!Py_IsInitialized()) return 0;
  const PyGILState_STATE lock = PyGILState_Ensure();
  if (PyErr_CheckSignals() != 0) PyErr_Fetch(&raised_type, &raised, &raised_trace);
  PyGILState_Release(lock);
  return raised_type != nullptr;
}

bool on_main_thread() { return ::gettid() == ::getpid(); }

}  // namespace

void watch_signals() {
  thread_local bool watched = false;
  if (std::exchange(watched, true) || !on_main_thread()) return;
  pw_set_interrupt_check(check, nullptr);
}

void run_signal_handlers() {
  if (on_main_thread()) check(nullptr);
}

bool interrupted() { return raised_type != nullptr && on_main_thread(); }

bool restore_interrupt() {
  if (!interrupted()) return false;
  PyErr_Restore(std::exchange(raised_type, nullptr), std::exchange(raised, nullptr),
                std::exchange(raised_trace, nullptr));
  return true;
}

}  // namespace pwpy
