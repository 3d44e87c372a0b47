#include "frames.h"

// Reads the interpreter's own frames: each frame object that is requested must be made, which costs as much
// as the rest of what a trace records of a call.
#if PY_VERSION_HEX < 0x030D0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#endif

namespace pwpy {

#if PY_VERSION_HEX < 0x030D0000

void walk_frames(bool (*look)(const CodePlace& place, void* user), void* user) {
  for (_PyInterpreterFrame* frame = PyThreadState_Get()->cframe->current_frame; frame != nullptr;
       frame = frame->previous) {
    if (_PyFrame_IsIncomplete(frame)) continue;
    const int offset = _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
    if (look({frame->f_code, offset}, user)) return;
  }
}

#else

void walk_frames(bool (*look)(const CodePlace& place, void* user), void* user) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const bool known = look({code, PyFrame_GetLasti(frame)}, user);
    Py_DECREF(code);
    PyFrameObject* outer = known ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
}

#endif

}  // namespace pwpy
