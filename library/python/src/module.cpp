// The extension module peerway._core. Its public interface is library/python/peerway/__init__.py.
#include <nanobind/nanobind.h>

#include <cstring>

#include "base/status.h"
#include "core.h"
#include "interrupts.h"

namespace nb = nanobind;

namespace {

/// Converts an error to the exception class of its status in peerway.errors.
void raise_python(const char* status, const char* message) try {
  const nb::object type = nb::module_::import_("peerway.errors").attr("by_status")(status);
  // Messages quote values, bytes of a file or names, so they may not be valid UTF-8.
  const auto length = static_cast<Py_ssize_t>(std::strlen(message));
  const auto text = nb::steal(PyUnicode_DecodeUTF8(message, length, "replace"));
  PyErr_SetObject(type.ptr(), text.ptr());
} catch (nb::python_error& error) {
  // An exception of a signal handler that ran meanwhile (KeyboardInterrupt) takes precedence.
  error.restore();
}

}  // namespace

NB_MODULE(_core, module) {
  pwpy::watch_signals();
  // Objects that live at the end of the interpreter are those of a program that died by an exception, whose
  // traceback must not scroll away over the names of our functions.
  nb::set_leak_warnings(false);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    if (pwpy::restore_interrupt()) return;  // an interrupt by the user takes precedence over any error here
    try {
      std::rethrow_exception(pointer);
    } catch (const peerway::Error& error) {
      raise_python(to_string(error.status()), error.what());
    } catch (const pw::Error& error) {  // thrown by functions of the tools beyond the C interface
      raise_python(pw_status_name(error.status()), (std::string("peerway: ") + error.what()).c_str());
    }
  });
  pwpy::bind_requests(module);
  pwpy::bind_core(module);
  pwpy::bind_team(module);
  pwpy::bind_memory(module);
  pwpy::bind_context(module);
  pwpy::bind_exchange(module);
  pwpy::bind_collective(module);
  pwpy::bind_plan(module);
  pwpy::bind_bench(module);
  pwpy::bind_bench_plans(module);
  pwpy::bind_config(module);
  pwpy::bind_routes(module);
  pwpy::bind_nic(module);
  pwpy::bind_trace(module);
  pwpy::bind_replay(module);
#ifdef PEERWAY_JAX
  pwpy::bind_jax(module);
#endif
}
