// Receive, compute, send, on each of two ranks in turn: the application that asynchronous GPU communication
// is for, in each variant that takes the CPU off the path between GPU and network.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "bench/gpu.h"
#include "bench/plans.h"

namespace pw::bench {

/// Which side waits for the message, starts the computation, and sends.
enum class Mode : uint8_t {
  cpu,       ///< the host all three, and it waits for each
  transmit,  ///< the host receives; computation and send are in the order of a stream
  stream,    ///< all in the order of a stream; the host waits once a batch
  graph,     ///< the same as a graph, which the host launches once a batch (GPUs only)
  kernel,    ///< one piece of work that goes on to the last trip: a kernel, or a call on the host's stream
};

/// "cpu", "transmit", "stream", "graph" or "kernel". Throws Error.
Mode mode_of(std::string_view name);

class AsyncPingPong {
 public:
  /// Messages as `message` says; computing adds 1 to each 32-bit word of the first `compute_bytes` bytes of
  /// `buffer`, a multiple of 16. A sample is `batch` trips there and back. Throws Error.
  AsyncPingPong(const Ends& ends, const pw_block& message, pw_region* buffer, uint64_t compute_bytes,
                Mode mode, uint64_t batch, uint64_t timeout_ns);

  /// Both ranks at the same time, as often and with as many samples.
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
  std::unique_ptr<Gpu> gpu_;  ///< none for the host
  void* kernel_ = nullptr;    ///< of the computation
  Gpu::Graph graph_;          ///< of a batch, in that mode
  Samples* taken_ = nullptr;  ///< what loop() is to fill
  pw_status failed_ = PW_OK;  ///< of loop(), with its message
  std::string why_;
};

}  // namespace pw::bench
