// The device `host`: the CPU does the work.
#ifndef STENCIL2D_HOST_H
#define STENCIL2D_HOST_H

#include "device.h"

namespace stencil {

/// Every queue is the calling thread: what is enqueued is done at once.
class HostDevice : public Device {
 public:
  /// A queue that is the calling thread.
  static pw_stream calling_thread() { return {{PW_HOST, 0}, nullptr}; }

  double* allocate(size_t doubles) override;
  void copy(void* to, const void* from, size_t bytes) override;
  pw_stream queue(bool urgent) override;
  void wait(pw_stream queue) override;
  void follow(pw_stream later, pw_stream earlier) override;
  void sweep(Part part, const Lattice& lattice, const double* from, double* to, pw_stream queue) override;
  void pack_columns(const Lattice& lattice, const double* from, double* packed, pw_stream queue) override;
  void unpack_columns(const Lattice& lattice, const double* packed, double* to, pw_stream queue) override;
  void mark(pw_stream queue) override;
  std::vector<double> marks() override;
  std::unique_ptr<Graph> capture(pw_stream queue, const std::function<void()>& body) override;

 protected:
  /// Does the work, or hands it to who does it in the queue's order.
  virtual void enqueue(pw_stream queue, std::function<void()> work);

 private:
  std::vector<std::unique_ptr<double[]>> memory_;
  std::vector<double> marks_;
};

}  // namespace stencil

#endif
