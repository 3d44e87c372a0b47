// The CUDA graph of a loop: a WHILE node around the launches of an iteration, and an IF node around those
// behind the loop's test; or, if the host knows the number of iterations, those of many iterations.
#pragma once

#include "xacc/runtime/gpu/recording.h"

namespace pwx {

/// What was recorded of a loop.
struct LoopParts {
  Recording again{};  ///< executed as long as the state on the GPU is PWX_LOOP_AGAIN
  bool has_rest = false;
  Recording last{};  ///< executed then if the state is PWX_LOOP_LAST
  pw::cuda::CUdeviceptr state = 0;

  bool operator==(const LoopParts&) const = default;
};

class LoopGraph {
 public:
  explicit LoopGraph(LoopParts recorded) : parts(std::move(recorded)) {}
  ~LoopGraph();
  LoopGraph(LoopGraph&& other) noexcept;
  LoopGraph& operator=(LoopGraph&& other) noexcept;

  /// Launches the graph. The first call makes it, and has the GPU execute iterations meanwhile. Throws
  /// Failure.
  void launch(pw::cuda::CUstream stream);
  /// Executes a known number of iterations, by graphs of many of them without conditions. The first call
  /// issues some or all of them one by one, and makes the graph meanwhile. Throws Failure, and Error if a
  /// plan fails.
  void repeat(pw::cuda::CUstream stream, long iterations);
  /// Whether a plan in it has failed.
  [[nodiscard]] bool has_failed() const;
  [[nodiscard]] bool has_plans() const;
  /// Ends the loop at the next test of its node, whatever its state. A graph without conditions goes on.
  void stop() const;

  LoopParts parts;

 private:
  void make_conditional(pw::cuda::CUstream stream);
  void destroy();

  pw::cuda::CUgraphExec graph_ = nullptr;
  long iterations_ = 0;  ///< in the graph, if it has no conditions
};

/// Loads the kernel that sets conditions. Throws Failure.
void prepare_loop_graphs();
void free_loop_graphs();

}  // namespace pwx
