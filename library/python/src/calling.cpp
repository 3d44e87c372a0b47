#include "calling.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "frames.h"

namespace pwpy {
namespace {

namespace nb = nanobind;

/// A line of Python, cached by the instruction that made the call, because lines are slow to find. The GIL
/// protects it.
struct Line {
  nb::object code;  // kept alive, so that no other code gets the same address
  int offset = -1;
  bool ours = false;  // in the package peerway, which the program called
  std::string text;
};

std::string text_of(PyObject* object) {
  Py_ssize_t length = 0;
  const char* text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text != nullptr ? std::string(text, static_cast<size_t>(length)) : std::string();
}

/// Returns the folder of the package, with a slash at the end.
const std::string& our_folder() {
  static const std::string folder = [] {
    const std::string file = text_of(nb::module_::import_("peerway").attr("__file__").ptr());
    return file.substr(0, file.rfind('/') + 1);
  }();
  return folder;
}

const Line& line_of(const CodePlace& place) {
  // Never destroyed, because its objects must not be freed after the interpreter has ended.
  static auto* lines = new std::array<Line, 256>;
  auto* const code = reinterpret_cast<PyObject*>(place.code);
  const auto slot = (reinterpret_cast<uintptr_t>(code) / 32 + static_cast<unsigned>(place.offset) / 2) % 256;
  Line& line = (*lines)[slot];
  if (line.code.ptr() == code && line.offset == place.offset) return line;
  line.code = nb::borrow(code);
  line.offset = place.offset;
  const std::string file = text_of(line.code.attr("co_filename").ptr());
  line.ours = file.starts_with(our_folder());
  line.text = text_of(line.code.attr("co_name").ptr()) + " at " + file.substr(file.rfind('/') + 1) + ":" +
              std::to_string(PyCode_Addr2Line(place.code, place.offset));
  return line;
}

/// Returns the innermost line outside the package; empty if there is none.
std::string_view calling_line() {
  std::string_view site;
  walk_frames(
      [](const CodePlace& place, void* user) {
        const Line& line = line_of(place);
        if (!line.ours) *static_cast<std::string_view*>(user) = line.text;
        return !line.ours;
      },
      &site);
  return site;
}

}  // namespace

Calling::Place::Place() {
  if (!pw::trace::wants_places()) return;
  if (const std::string_view line = calling_line(); !line.empty()) call.emplace(line);
}

}  // namespace pwpy
