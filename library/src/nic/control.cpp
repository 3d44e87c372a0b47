#include "nic/control.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/format.h"
#include "base/shared_memory.h"
#include "base/status.h"

namespace pw::nic {

ControlSpan::ControlSpan(uint32_t endpoints, bool with_boxes)
    : endpoints_(endpoints),
      bytes_(box_at(endpoints, with_boxes ? endpoints : 0)),
      descriptor_(make_shared_memory("peerway-nic", bytes_, box_at(endpoints, 0))) {
  void* address = MAP_FAILED;
  if (descriptor_) address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (address == MAP_FAILED)
    throw Error(PW_NO_MEMORY, format("no {} bytes of shared memory for the markers of {} endpoints{}", bytes_,
                                     endpoints, why_no_shared_memory(errno)));
  address_ = static_cast<std::byte*>(address);
}

ControlSpan::~ControlSpan() { munmap(address_, bytes_); }

}  // namespace pw::nic
