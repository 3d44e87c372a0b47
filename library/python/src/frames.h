// Walks the Python frames of this thread.
#pragma once

#include <Python.h>

namespace pwpy {

/// A place in Python's code.
struct CodePlace {
  PyCodeObject* code;
  int offset;  ///< offset of the instruction, in bytes
};

/// Calls `look` with the places of this thread's frames, from the innermost outwards, until it returns true.
/// The GIL must be held.
void walk_frames(bool (*look)(const CodePlace& place, void* user), void* user);

}  // namespace pwpy
