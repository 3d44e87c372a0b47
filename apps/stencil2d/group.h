// The processes that run the stencil together, whoever started and joins them: Peerway's team, or MPI.
#ifndef STENCIL2D_GROUP_H
#define STENCIL2D_GROUP_H

#include <cstddef>

namespace stencil {

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  /// Every rank gives as many bytes; all get those of all, in rank order.
  virtual void all_gather(const void* mine, size_t bytes, void* all) = 0;
};

}  // namespace stencil

#endif
