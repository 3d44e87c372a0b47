// The C functions of contexts, regions, remotes, signals and operations. Each checks its pointers and turns
// exceptions into a status.
#include "base/clock.h"
#include "base/format.h"
#include "base/status.h"
#include "context/handle.h"
#include "context/inspect.h"
#include "team/handle.h"
#include "trace/call.h"

namespace {

using pw::format;
using pw::given;

pw_status copy_key(const std::vector<std::byte>& bytes, void* key, size_t capacity, size_t* length) {
  *length = bytes.size();
  if (capacity < bytes.size())
    return pw::fail(PW_OUT_OF_RANGE,
                    format("the key has {} bytes, the buffer {}; PW_KEY_MAX ({}) is always enough",
                           bytes.size(), capacity, PW_KEY_MAX));
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(key));
  return PW_OK;
}

}  // namespace

pw_context::pw_context(std::shared_ptr<pw::Team> team) {
  struct Whole {
    std::shared_ptr<pw::Team> team;  // outlives the context
    pw::Context context;
  };
  pw::Team& used = *team;
  const std::shared_ptr<Whole> whole(new Whole{std::move(team), pw::Context(used)});
  context = {whole, &whole->context};
}

const std::shared_ptr<pw::Context>& pw_context::open() const {
  if (context->closed()) throw pw::Error(PW_CLOSED, "this context was closed; make a new one");
  return context;
}

extern "C" {

pw_status pw_context_create(pw_team* team, pw_context** context) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(team, context), [&] {
    *context = new pw_context(team->team);
    return PW_OK;
  });
}

pw_status pw_context_close(pw_context* context) {
  if (pw::in_forked_child()) return PW_OK;
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context), [&] {
    context->context->close();
    return PW_OK;
  });
}

pw_status pw_context_free(pw_context* context) {
  pw::release(context);
  return PW_OK;
}

pw_status pw_context_use(pw_context* context, const char* paths) {
  return pw::catch_errors(__func__, given(context), [&] {
    context->context->resolver().use(paths != nullptr ? paths : "");
    return PW_OK;
  });
}

pw_status pw_context_set_wait_policy(pw_context* context, pw_wait_policy policy) {
  return pw::catch_errors(__func__, given(context), [&] {
    if (policy != PW_WAIT_BUSY_POLL && policy != PW_WAIT_BLOCKING)
      return pw::fail(PW_INVALID_ARGUMENT,
                      format("{} is not a wait policy; there are PW_WAIT_BUSY_POLL ({}) and "
                             "PW_WAIT_BLOCKING ({})",
                             static_cast<int>(policy), static_cast<int>(PW_WAIT_BUSY_POLL),
                             static_cast<int>(PW_WAIT_BLOCKING)));
    context->context->waiting()->set_blocking(policy == PW_WAIT_BLOCKING);
    return PW_OK;
  });
}

pw_wait_policy pw_context_wait_policy(const pw_context* context) {
  return context != nullptr && context->context->waiting()->blocking() ? PW_WAIT_BLOCKING : PW_WAIT_BUSY_POLL;
}

pw_status pw_region_allocate(pw_context* context, pw_device device, uint64_t bytes, pw_region** region) {
  return pw::catch_errors(__func__, given(context, region), [&] {
    *region = new pw_region{context->open(), context->context->allocate(device, bytes)};
    return PW_OK;
  });
}

pw_status pw_region_register(pw_context* context, void* address, uint64_t bytes, pw_region** region) {
  return pw::catch_errors(__func__, given(context, region), [&] {
    *region = new pw_region{context->open(),
                            context->context->register_memory(address, bytes, pw::Access::read_write)};
    return PW_OK;
  });
}

pw_status pw_region_register_read_only(pw_context* context, const void* address, uint64_t bytes,
                                       pw_region** region) {
  return pw::catch_errors(__func__, given(context, region), [&] {
    auto* const memory = const_cast<void*>(address);  // nothing of this region writes to it
    *region = new pw_region{context->open(),
                            context->context->register_memory(memory, bytes, pw::Access::read_only)};
    return PW_OK;
  });
}

pw_status pw_region_free(pw_region* region) {
  pw::release(region);
  return PW_OK;
}

void* pw_region_address(const pw_region* region) {
  return region == nullptr ? nullptr : region->region->address();
}
uint64_t pw_region_bytes(const pw_region* region) { return region == nullptr ? 0 : region->region->bytes(); }

pw_access pw_region_access(const pw_region* region) {
  return region != nullptr && region->region->access() == pw::Access::read_only ? PW_READ_ONLY
                                                                                : PW_READ_WRITE;
}

pw_device pw_region_device(const pw_region* region) {
  if (region == nullptr) return {PW_HOST, 0};
  const pw::DeviceId id = region->region->device().id();
  return {id.kind, id.index};
}

pw_status pw_region_key(const pw_region* region, void* key, size_t capacity, size_t* length) {
  return pw::catch_errors(__func__, given(region, length) && (capacity == 0 || given(key)), [&] {
    return copy_key(region->context->key_of(*region->region), key, capacity, length);
  });
}

pw_status pw_remote_import(pw_context* context, const void* key, size_t length, pw_remote** remote) {
  return pw::catch_errors(__func__, given(context, key, remote), [&] {
    *remote = new pw_remote{context->open(),
                            context->context->import({static_cast<const std::byte*>(key), length}), nullptr};
    return PW_OK;
  });
}

pw_status pw_remote_free(pw_remote* remote) {
  pw::release(remote);
  return PW_OK;
}
int pw_remote_rank(const pw_remote* remote) { return remote == nullptr ? -1 : remote->remote->rank(); }
uint64_t pw_remote_bytes(const pw_remote* remote) { return remote == nullptr ? 0 : remote->remote->bytes(); }

pw_access pw_remote_access(const pw_remote* remote) {
  return remote != nullptr && remote->remote->key.access == pw::Access::read_only ? PW_READ_ONLY
                                                                                  : PW_READ_WRITE;
}

pw_status pw_signal_create(pw_context* context, int sender, pw_device device, pw_signal** signal) {
  return pw::catch_errors(__func__, given(context, signal), [&] {
    pw::Context& in = *context->open();
    *signal = new pw_signal{context->context,
                            std::make_shared<pw::Signal>(in, sender, in.device_named(device)), nullptr};
    return PW_OK;
  });
}

pw_status pw_signal_free(pw_signal* signal) {
  pw::release(signal);
  return PW_OK;
}

pw_status pw_signal_key(const pw_signal* signal, void* key, size_t capacity, size_t* length) {
  return pw::catch_errors(__func__, given(signal, length) && (capacity == 0 || given(key)),
                          [&] { return copy_key(signal->signal->key(), key, capacity, length); });
}

pw_status pw_signal_value(const pw_signal* signal, uint64_t* value) {
  return pw::catch_errors(__func__, given(signal, value), [&] {
    *value = signal->signal->value();
    return PW_OK;
  });
}

pw_status pw_signal_wait(pw_signal* signal, uint64_t value, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(signal), [&] { return signal->signal->wait(value, timeout_ns); });
}

pw_status pw_put(pw_context* context, pw_remote* to, uint64_t to_offset, const pw_region* from,
                 uint64_t from_offset, uint64_t bytes, const pw_notification* notification) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, to, from), [&] {
    const pw::RangeTransfer range{pw::Op::put, &pw::region_of(to), from->region.get(),
                                  to_offset,   from_offset,        bytes};
    if (notification == nullptr) return context->context->transfer_range(range);
    return context->context->transfer_range(range, pw::CheckedNotification(notification).value());
  });
}

pw_status pw_get(pw_context* context, pw_region* to, uint64_t to_offset, const pw_remote* from,
                 uint64_t from_offset, uint64_t bytes) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, to, from), [&] {
    return context->context->transfer_range(
        {pw::Op::get, &pw::region_of(from), to->region.get(), from_offset, to_offset, bytes});
  });
}

pw_status pw_put_block(pw_context* context, pw_remote* to, const pw_block* to_block, const pw_region* from,
                       const pw_block* from_block, const pw_notification* notification) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, to, to_block, from, from_block), [&] {
    const pw::CheckedNotification checked(notification);
    return context->context->put_blocks(pw::region_of(to), *pw::CheckedBlock(to_block), *from->region,
                                        *pw::CheckedBlock(from_block), checked.get());
  });
}

pw_status pw_get_block(pw_context* context, pw_region* to, const pw_block* to_block, const pw_remote* from,
                       const pw_block* from_block) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, to, to_block, from, from_block), [&] {
    return context->context->get_blocks(pw::region_of(from), *pw::CheckedBlock(from_block), *to->region,
                                        *pw::CheckedBlock(to_block));
  });
}

pw_status pw_notify(pw_context* context, const pw_notification* notification) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context, notification), [&] {
    return context->context->notify(pw::CheckedNotification(notification).value());
  });
}

pw_status pw_flush(pw_context* context, int rank, uint64_t timeout_ns) {
  const pw::trace::Call call(__builtin_return_address(0));
  return pw::catch_errors(__func__, given(context),
                          [&] { return context->context->flush(rank, timeout_ns); });
}

}  // extern "C"

namespace pw {

std::vector<NamedOffer> paths_for(pw_context* context, const pw_remote* remote, const pw_region* region) {
  return context->context->resolver().offers(*region->region, *remote->remote);
}

std::shared_ptr<void> memory_of(const pw_region* region) { return region->region->memory(); }

std::string explain_for(pw_context* context, const pw_remote* remote, const pw_region* region, Op op,
                        route::ShapeClass shape) {
  return context->context->resolver().explain(op, shape, *region->region, *remote->remote);
}

void set_staging_chunk_bytes(pw_context* context, uint64_t bytes) {
  context->context->set_chunk_bytes(bytes);
}

}  // namespace pw
