// Meetings for Python: what all ranks do together, but each talks to its partners alone (team/team.h).
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "context/handle.h"
#include "core.h"
#include "team/agreement.h"

namespace pwpy {
namespace {

using Letter = std::pair<int, nb::bytes>;

/// The exchange among the ranks that make a halo.
class Meeting {
 public:
  explicit Meeting(Context& context) : context_(context->get()->context) {
    pw::refuse_in_forked_child("halo");
    meeting_ = context_->team().meet(pw::Collective::halo_extents);
  }

  std::vector<Letter> exchange(const std::vector<Letter>& given) {
    pw::Letters letters;
    for (const auto& [rank, text] : given) {
      const auto* bytes = static_cast<const std::byte*>(text.data());
      letters.emplace_back(rank, std::vector(bytes, bytes + text.size()));
    }
    {
      const nb::gil_scoped_release release;
      letters = meeting_->exchange(letters, pw::config_number("timeout"));
    }
    std::vector<Letter> received;
    for (const auto& [rank, text] : letters) received.emplace_back(rank, nb::bytes(text.data(), text.size()));
    return received;
  }

  /// Ends it at all ranks. Throws what another rank has ended it by before.
  void object(const std::string& status, const std::string& text) {
    const nb::gil_scoped_release release;
    meeting_->object(pw::objection_of(pw::Error(parse_status(status), text), context_->team().rank(),
                                      pw::action_of(pw::Collective::halo_extents)));
  }

  void close() {
    meeting_.reset();
    context_.reset();
  }

 private:
  static pw_status parse_status(const std::string& name) {
    for (int status = PW_INTERRUPTED; status > PW_OK; --status)
      if (pw_status_name(static_cast<pw_status>(status)) == name) return static_cast<pw_status>(status);
    return PW_INTERNAL;
  }

  std::shared_ptr<pw::Context> context_;
  std::unique_ptr<pw::Meeting> meeting_;
};

}  // namespace

void bind_meeting(nb::module_& module) {
  nb::class_<Meeting>(module, "Meeting")
      .def(nb::init<Context&>(), nb::arg("context"), nb::keep_alive<1, 2>())
      .def("exchange", &Meeting::exchange, nb::arg("letters"))
      .def("object", &Meeting::object, nb::arg("status"), nb::arg("text"))
      .def("close", &Meeting::close);
}

}  // namespace pwpy
