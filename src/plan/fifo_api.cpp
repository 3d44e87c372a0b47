// The C functions of FIFOs.
#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "plan/fifo.h"

struct pw_fifo {
  pw_fifo(pw::Context& context, pw::Device& device, uint32_t count, pw::FifoLists lists)
      : fifo(context, device, count, std::move(lists)) {}
  pw::Fifo fifo;
};

extern "C" {

pw_status pw_fifo_create(pw_context* context, pw_device device, uint32_t entries, pw_region* const* regions,
                         uint32_t region_count, pw_remote* const* remotes, uint32_t remote_count,
                         pw_fifo** fifo) {
  const bool all = pw::given(context, fifo) && (region_count == 0 || regions != nullptr) &&
                   (remote_count == 0 || remotes != nullptr);
  return pw::guard(__func__, all, [&] {
    pw::FifoLists lists;
    for (uint32_t r = 0; r < region_count; ++r) {
      if (regions[r] == nullptr) return pw::fail_null("pw_fifo_create");
      lists.regions.push_back(regions[r]->region);
    }
    for (uint32_t r = 0; r < remote_count; ++r) {
      if (remotes[r] == nullptr) return pw::fail_null("pw_fifo_create");
      lists.remotes.push_back(remotes[r]->remote.get());
    }
    *fifo = new pw_fifo(context->context, context->context.device_named(device), entries, std::move(lists));
    return PW_OK;
  });
}

pw_status pw_fifo_get_handle(pw_fifo* fifo, pw_fifo_handle* handle) {
  return pw::guard(__func__, pw::given(fifo, handle), [&] {
    *handle = fifo->fifo.handle();
    return PW_OK;
  });
}

pw_status pw_fifo_status(pw_fifo* fifo) {
  return pw::guard(__func__, pw::given(fifo), [&] { return fifo->fifo.status(); });
}

void pw_fifo_free(pw_fifo* fifo) { delete fifo; }

}  // extern "C"
