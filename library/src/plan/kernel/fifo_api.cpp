// The C functions of FIFOs.
#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "plan/kernel/fifo.h"
#include "team/wait.h"

struct pw_fifo {
  pw_fifo(std::shared_ptr<pw::Context> in, pw::Device& device, uint32_t count, pw::FifoLists lists,
          pw::Uses used)
      : context(std::move(in)), uses(std::move(used)), fifo(*context, device, count, std::move(lists)) {}
  std::shared_ptr<pw::Context> context;
  pw::Uses uses;
  pw::Fifo fifo;
};

extern "C" {

pw_status pw_fifo_create(pw_context* context, pw_remote* const* remotes, uint32_t remote_count,
                         pw_region* const* regions, uint32_t region_count, pw_device device, uint32_t entries,
                         pw_fifo** fifo) {
  const bool all = pw::given(context, fifo) && (region_count == 0 || regions != nullptr) &&
                   (remote_count == 0 || remotes != nullptr);
  return pw::catch_errors(__func__, all, [&] {
    pw::FifoLists lists;
    pw::Uses uses;
    for (uint32_t r = 0; r < region_count; ++r) {
      if (regions[r] == nullptr) return pw::refuse_call("pw_fifo_create");
      lists.regions.push_back(regions[r]->region);
    }
    for (uint32_t r = 0; r < remote_count; ++r) {
      if (remotes[r] == nullptr) return pw::refuse_call("pw_fifo_create");
      pw::refuse_lost(context->context->team(), remotes[r]->remote->rank());
      lists.remotes.push_back(remotes[r]->remote.get());
      uses.push_back(remotes[r]->remote);
    }
    pw::Device& on = context->open()->device_named(device);
    *fifo = new pw_fifo(context->context, on, entries, std::move(lists), std::move(uses));
    return PW_OK;
  });
}

pw_status pw_fifo_get_handle(pw_fifo* fifo, pw_fifo_handle* handle) {
  return pw::catch_errors(__func__, pw::given(fifo, handle), [&] {
    *handle = fifo->fifo.handle();
    return PW_OK;
  });
}

pw_status pw_fifo_status(pw_fifo* fifo) {
  return pw::catch_errors(__func__, pw::given(fifo), [&] { return fifo->fifo.status(); });
}

pw_status pw_fifo_free(pw_fifo* fifo) {
  pw::release(fifo);
  return PW_OK;
}

}  // extern "C"
