#include "device/host/reduction.h"

namespace pw {
namespace {

// Combines so many elements at once that their sums stay in the first cache, and that the loops over them
// become vector instructions.
struct OnCpu {
  const peerway::device::Reduction& reduction;

  template <class T, peerway::device::Combine how>
  void run() const {
    constexpr unsigned kBytes = 2048;
    peerway::device::detail::reduce_share<T, how, kBytes / sizeof(T)>(reduction, 0, 1);
  }
};

}  // namespace

void host_reduce(const peerway::device::Reduction& reduction) {
  peerway::device::detail::run_typed(reduction.element, reduction.combine, OnCpu{reduction});
}

}  // namespace pw
