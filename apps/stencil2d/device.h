// What a variant needs of a device: memory, queues, the kernels, time. One implementation for the CPU
// (host.h), one for GPUs (cuda.h).
#ifndef STENCIL2D_DEVICE_H
#define STENCIL2D_DEVICE_H

#include <peerway/peerway.h>

#include <functional>
#include <memory>
#include <vector>

#include "lattice.h"

namespace stencil {

enum class Part { all, interior, boundary };  // boundary: the cells that read the shadow

/// A recorded sequence of work.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay(pw_stream queue) = 0;
};

/// All work goes into a queue and is done in its order; a queue of the plain host device is the calling
/// thread.
class Device {
 public:
  virtual ~Device() = default;

  /// Zeroed, kept until the device is destroyed.
  virtual double* allocate(size_t doubles) = 0;
  /// Between any two memories; returns when it is done.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;

  /// A new queue; what is in an urgent one goes before what others have waiting.
  virtual pw_stream queue(bool urgent) = 0;
  virtual void wait(pw_stream queue) = 0;
  /// What is put into `later` from now on runs after all that is in `earlier` now.
  virtual void follow(pw_stream later, pw_stream earlier) = 0;

  /// One step of a part of the cells.
  virtual void sweep(Part part, const Lattice& lattice, const double* from, double* to, pw_stream queue) = 0;
  /// The first and the last column of the own cells into `packed`, one after the other.
  virtual void pack_columns(const Lattice& lattice, const double* from, double* packed, pw_stream queue) = 0;
  /// The west and the east shadow out of `packed`, where there is a neighbour.
  virtual void unpack_columns(const Lattice& lattice, const double* packed, double* to, pw_stream queue) = 0;

  /// Notes the time at which the queue gets here.
  virtual void mark(pw_stream queue) = 0;
  /// The times since the first mark in ns, and forgets them. The queue has been waited for.
  virtual std::vector<double> marks() = 0;

  /// What `body` puts into `queue`, and into queues that follow it and that it follows in the end.
  virtual std::unique_ptr<Graph> capture(pw_stream queue, const std::function<void()>& body) = 0;
};

}  // namespace stencil

#endif
