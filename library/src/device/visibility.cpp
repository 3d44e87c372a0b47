#include "device/visibility.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "base/siphash.h"
#include "device/kinds.h"

namespace pw {
namespace {

std::atomic<bool> hidden_peers = false;

}  // namespace

uint64_t shown_devices() {
  std::string text;
  for (const DeviceKind& kind : device_kinds()) {
    const char* shown = kind.shown_by == nullptr ? nullptr : std::getenv(kind.shown_by);
    text += shown == nullptr ? std::string("-") : "=" + std::string(shown);
  }
  return first_word(siphash(Secret{}, view_of(text)));
}

void expect_hidden_peers() { hidden_peers.store(true, std::memory_order_relaxed); }

bool expects_hidden_peers() { return hidden_peers.load(std::memory_order_relaxed); }

}  // namespace pw
