#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

#include "nic/check/counts.h"
#include "nic/check/stand.h"
#include "nic/check/talk.h"
#include "nic/check/traffic.h"

namespace pw::nic::check {
namespace {

/// One of the passive sides. It calls the plugin to open, register and close, and during traffic, but never
/// while bytes of others should move.
class FarEnd {
 public:
  FarEnd(Stand& stand, uint32_t rank) : stand_(stand), rank_(rank) {}

  Reply answer(const Command& request) {
    switch (request.kind) {
      case CommandKind::open:
        return open();
      case CommandKind::memory:
        return memory();
      case CommandKind::huge:
        return key_reply(end_->add(stand_.huge.span(), key_));
      case CommandKind::forget:
        forget(static_cast<int>(request.value));
        return {};
      case CommandKind::counts:
        return counts();
      case CommandKind::traffic:
        return traffic(unpack_places(request.bytes));
      case CommandKind::close:
        if (registered_ != nullptr) end_->remove(std::exchange(registered_, nullptr));
        end_->close();
        return {};
    }
    return {PW_NIC_INVALID, 0, "an unknown request", {}};
  }

 private:
  Reply open() {
    end_ =
        std::make_unique<End>(Plugin::load(stand_.options.plugin), stand_.job, stand_.options.configuration);
    ByteWriter writer;
    write(writer, end_->address());
    return {PW_NIC_OK, end_->info().number, {}, writer.take()};
  }
  Reply memory() {
    if (registered_ != nullptr) end_->remove(std::exchange(registered_, nullptr));
    registered_ = end_->add(stand_.arena[rank_].span(), key_);
    return key_reply(registered_);
  }
  // A store that arrives after this is too late.
  void forget(int byte) {
    const Arena& arena = stand_.arena[rank_];
    end_->remove(std::exchange(registered_, nullptr));
    std::memset(arena.base(), byte, arena.bytes());
  }
  static Reply counts() {
    ByteWriter writer;
    const Counts now = count_all();
    writer.put(std::as_bytes(std::span(&now, 1)));
    return {PW_NIC_OK, 0, {}, writer.take()};
  }
  Reply traffic(const Places& places) {
    const Moved moved = run_traffic(*end_, stand_, rank_, places);
    ByteWriter writer;
    writer.put(std::as_bytes(std::span(&moved, 1)));
    return {PW_NIC_OK, 0, {}, writer.take()};
  }
  [[nodiscard]] Reply key_reply(pw_nic_memory*) const {
    ByteWriter writer;
    write(writer, key_);
    return {PW_NIC_OK, 0, {}, writer.take()};
  }

  Stand& stand_;
  const uint32_t rank_;
  std::unique_ptr<End> end_;
  pw_nic_memory* registered_ = nullptr;
  pw_nic_key key_{};
};

int serving = -1;

[[noreturn]] void far_hangs(const char* entry) {
  send(serving, Reply{PW_NIC_BROKEN,
                      0,
                      format("{}() has not returned for {:.0f} s in a far end", entry, Watchdog::kHung_s),
                      {}});
  _exit(1);
}

}  // namespace

void serve_far_end(Stand& stand, uint32_t rank, int socket) {
  serving = socket;
  Watchdog::start(far_hangs);
  std::shared_ptr<const Plugin> held;  // never unloaded, because its threads may run until the process ends
  try {
    held = Plugin::load(stand.options.plugin);
  } catch (const Error&) {
    return;  // the near end reports why
  }
  FarEnd far(stand, rank);
  for (Command request; receive(socket, request);) {
    Reply reply;
    try {
      reply = far.answer(request);
    } catch (const Finding& finding) {
      reply = {PW_NIC_BROKEN, 0, finding.what(), {}};
    }
    if (!send(socket, reply)) return;
  }
}

}  // namespace pw::nic::check
