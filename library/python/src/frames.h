// The frames of Python that this thread is in.
#pragma once

#include <Python.h>

namespace pwpy {

/// A place in Python's code.
struct CodePlace {
  PyCodeObject* code;
  int offset;  ///< of the instruction, in bytes
};

/// Calls `look` with the places that this thread is in, from the innermost on, until it returns true. With
/// the interpreter's lock held.
void walk_frames(bool (*look)(const CodePlace& place, void* user), void* user);

}  // namespace pwpy
