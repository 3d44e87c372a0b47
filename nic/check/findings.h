// The exceptions that a conformance test throws.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace pw::nic::check {

class Finding : public std::exception {
 public:
  explicit Finding(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// The plugin does not do what nic.h requires; the text has the evidence, and what to do.
class Broken : public Finding {
  using Finding::Finding;
};
/// The plugin refuses its options. At the first endpoint that says nothing about the plugin.
class WrongOptions : public Broken {
  using Broken::Broken;
};
/// The test could not be exercised.
class Inconclusive : public Finding {
  using Finding::Finding;
};
/// The plugin lacks what the test is about.
class Absent : public Finding {
  using Finding::Finding;
};

}  // namespace pw::nic::check
