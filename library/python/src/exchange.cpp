// Exchanges for Python: collectives in which each rank talks only to its partners (team/team.h).
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/timeout.h"
#include "context/handle.h"
#include "core.h"
#include "team/agreement.h"

namespace pwpy {
namespace {

using PeerMessage = std::pair<int, nb::bytes>;

/// The exchange of the ranks that make a halo.
class Exchange {
 public:
  explicit Exchange(Context& context) : context_(context->get()->context) {
    pw::refuse_in_forked_child("halo");
    exchange_ = context_->team().begin_exchange(pw::CallKind::halo_extents);
  }

  std::vector<PeerMessage> exchange(const std::vector<PeerMessage>& outgoing) {
    pw::PeerMessages messages;
    for (const auto& [rank, text] : outgoing) {
      const auto* bytes = static_cast<const std::byte*>(text.data());
      messages.emplace_back(rank, std::vector(bytes, bytes + text.size()));
    }
    {
      const nb::gil_scoped_release release;
      messages = exchange_->exchange(messages, pw::settings::timeout.nanoseconds());
    }
    std::vector<PeerMessage> received;
    for (const auto& [rank, text] : messages)
      received.emplace_back(rank, nb::bytes(text.data(), text.size()));
    return received;
  }

  /// Ends the exchange at all ranks. If another rank has ended it before, throws that rank's error.
  void abort(const std::string& status, const std::string& text) {
    const nb::gil_scoped_release release;
    exchange_->abort(pw::abort_reason_for(pw::Error(parse_status(status), text), context_->team().rank(),
                                          pw::action_of(pw::CallKind::halo_extents)));
  }

  void close() {
    exchange_.reset();
    context_.reset();
  }

 private:
  static pw_status parse_status(const std::string& name) {
    for (int status = PW_INTERRUPTED; status > PW_OK; --status)
      if (pw_status_name(static_cast<pw_status>(status)) == name) return static_cast<pw_status>(status);
    return PW_INTERNAL;
  }

  std::shared_ptr<pw::Context> context_;
  std::unique_ptr<pw::Exchange> exchange_;
};

}  // namespace

void bind_exchange(nb::module_& module) {
  nb::class_<Exchange>(module, "Exchange")
      .def(nb::init<Context&>(), nb::arg("context"), nb::keep_alive<1, 2>())
      .def("exchange", &Exchange::exchange, nb::arg("messages"))
      .def("abort", &Exchange::abort, nb::arg("status"), nb::arg("text"))
      .def("close", &Exchange::close);
}

}  // namespace pwpy
