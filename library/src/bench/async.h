// Receive, compute, send, on two ranks in turn. This is the application for asynchronous GPU communication,
// in each variant that takes the CPU off the path between GPU and network.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "bench/gpu.h"
#include "bench/plans.h"

namespace pw::bench {

/// Which side waits for the message, starts the computation, and sends.
enum class Mode : uint8_t {
  cpu,       ///< the host does all three, and waits for each
  transmit,  ///< the host receives; computation and send are in the order of a stream
  stream,    ///< all three in the order of a stream; the host waits once per batch
  graph,     ///< the same as a graph, which the host launches once per batch (GPUs only)
  kernel,    ///< one piece of work for all trips: a kernel, or a call on the host's stream
};

/// Parses "cpu", "transmit", "stream", "graph" or "kernel". Throws Error.
Mode mode_of(std::string_view name);

class AsyncPingPong {
 public:
  /// Messages have the layout `message`. The computation adds 1 to each 32-bit word of the first
  /// `compute_bytes` bytes of `buffer`, a multiple of 16. A sample is `batch` round trips. Throws Error.
  AsyncPingPong(const Ends& ends, const pw_block& message, pw_region* buffer, uint64_t compute_bytes,
                Mode mode, uint64_t batch, uint64_t timeout_ns);

  /// Both ranks must call it at the same time and equally often, with the same number of samples.
  Samples run(uint64_t samples);

 private:
  [[nodiscard]] bool receives_on_stream() const { return mode_ == Mode::stream || mode_ == Mode::graph; }
  void trip();
  void trips();
  void receive();
  void compute();
  void send();
  Samples run_in_one(uint64_t samples);
  static void touch(void* self);
  static void loop(void* self);

  Ends ends_;
  pw_region* buffer_;
  uint64_t compute_bytes_;
  Mode mode_;
  uint64_t batch_;
  uint64_t timeout_ns_;
  Plan put_, wait_;
  Stream stream_;
  std::unique_ptr<Gpu> gpu_;           ///< null on the host
  cuda::CUfunction kernel_ = nullptr;  ///< the kernel of the computation
  Gpu::Graph graph_;                   ///< a graph of a batch, in that mode
  Samples* taken_ = nullptr;           ///< the samples that loop() fills in
  pw_status failed_ = PW_OK;           ///< status of loop(); `why_` is its message
  std::string why_;
};

}  // namespace pw::bench
