#include "bench/pair.h"

#include <memory>
#include <vector>

#include "base/status.h"

namespace pw::bench {
namespace {

void check(pw_status status) {
  if (status != PW_OK) throw Error(status, last_error_message());
}

/// Reads one word of every cache line of a block in host memory, like a consumer of the data.
void touch_block(const pw_region* region, const pw_block& block) {
  const auto* base = static_cast<const std::byte*>(pw_region_address(region)) + block.offset;
  const uint64_t rows = block.dims == 0 ? 1 : block.count[0];
  const int64_t stride = block.dims == 0 ? 0 : block.stride[0];
  for (uint64_t row = 0; row < rows; ++row) {
    const auto* bytes =
        reinterpret_cast<const volatile std::byte*>(base + static_cast<int64_t>(row) * stride);
    for (uint64_t at = 0; at < block.block_bytes; at += 64) static_cast<void>(bytes[at]);
  }
}

}  // namespace

void Pair::put(const Work& work, bool notify) {
  const pw_notification notification{.signal = ends_.far_arrived, .by = 1};
  const pw_notification* after = notify ? &notification : nullptr;
  const pw_block& block = work.block;
  if (block.dims == 0) {
    check(pw_put(ends_.context, ends_.far_target, block.offset, ends_.source, block.offset, block.block_bytes,
                 after));
  } else {
    check(pw_put_block(ends_.context, ends_.far_target, &block, ends_.source, &block, after));
  }
}

void Pair::get(const Work& work) {
  const pw_block& block = work.block;
  if (block.dims == 0) {
    check(
        pw_get(ends_.context, ends_.target, block.offset, ends_.far_source, block.offset, block.block_bytes));
  } else {
    check(pw_get_block(ends_.context, ends_.target, &block, ends_.far_source, &block));
  }
}

void Pair::flush(const Work& work) { check(pw_flush(ends_.context, ends_.partner, work.timeout_ns)); }

void Pair::wait_next(const Work& work) { check(pw_signal_wait(ends_.arrived, ++seen_, work.timeout_ns)); }

void Pair::notify_next() {
  const pw_notification notification{.signal = ends_.far_arrived, .by = 1};
  check(pw_notify(ends_.context, &notification));
}

Samples Pair::ping_pong(const Work& work) {
  Samples samples = timed(work.iterations, [&] {
    if (ends_.leads) put(work, true);
    wait_next(work);
    if (work.touch) touch_block(ends_.target, work.block);
    if (!ends_.leads) put(work, true);
  });
  flush(work);
  return samples;
}

Samples Pair::signal_ping_pong(const Work& work) {
  Samples samples = timed(work.iterations, [&] {
    if (ends_.leads) notify_next();
    wait_next(work);
    if (!ends_.leads) notify_next();
  });
  flush(work);
  return samples;
}

Samples Pair::put_window(const Work& work) {
  if (!ends_.leads) return {};
  return timed(work.iterations, [&] {
    for (uint64_t i = 0; i < work.window; ++i) put(work, false);
    flush(work);
  });
}

Samples Pair::put_both(const Work& work) {
  return timed(work.iterations, [&] {
    for (uint64_t i = 1; i < work.window; ++i) put(work, false);
    put(work, true);
    flush(work);
    wait_next(work);
  });
}

Samples Pair::get_window(const Work& work) {
  if (!ends_.leads) return {};
  return timed(work.iterations, [&] {
    for (uint64_t i = 0; i < work.window; ++i) get(work);
    flush(work);
  });
}

Samples Pair::register_again(const Work& work) {
  if (!ends_.leads) return {};
  auto* address = static_cast<std::byte*>(pw_region_address(ends_.source)) + work.block.offset;
  std::vector<std::unique_ptr<pw_region, pw_status (*)(pw_region*)>> regions;  // freed after the last sample
  regions.reserve(work.iterations);
  return timed(work.iterations, [&] {
    pw_region* region = nullptr;
    check(pw_region_register(ends_.context, address, work.block.block_bytes, &region));
    regions.emplace_back(region, pw_region_free);
  });
}

}  // namespace pw::bench
