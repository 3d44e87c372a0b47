// The persistent stencil: all steps in one kernel. A block keeps some rows of the lattice in shared memory;
// what its neighbours need of a step, be they on this GPU or on the next, they get as packets, stored
// straight into their slots.
//
// There is no barrier between blocks and no fence. Each packet carries the number of its step beside the
// data. A thread that has the packet of step n from a neighbour knows that this one has used the packet of
// step n - 1: two slots, used in turn, are enough.
//
// The CPU's tests run the same code with threads for threads (in_kernel_test.cpp).
#ifndef STENCIL2D_PERSISTENT_CUH
#define STENCIL2D_PERSISTENT_CUH

#ifndef __CUDACC_RTC__
#include <string.h>
#endif

#include <peerway/device.cuh>

#include "point.h"

namespace stencil {

using peerway::device::Packet;
using peerway::device::Word;

/// A way for packets to a neighbour and from it: two slots each, used in turn. Null beyond a fixed border.
struct Lane {
  Packet* out;    // the neighbour's
  Packet* in;     // this rank's
  unsigned turn;  // packets from the first slot to the second
  int rank;       // of the neighbour
};

struct Persistent {
  const double* from;  // the array with its shadow, which is not read
  double* to;
  unsigned long long pitch;
  unsigned ny, nx;    // own cells
  unsigned rows;      // of a block; the last one may have fewer
  Lane north, south;  // of nx packets a step
  Lane west, east;    // of ny packets a step
  Packet* inner;  // from block to block: for each but the last 2 * nx packets downwards, then as many upwards
  int rank;
  unsigned flag;  // of the first step; counts on from launch to launch
  unsigned long long steps, batch;
  Word* marks;  // the time at the start and after each batch
  pw_guard guard;
};

/// Doubles of shared memory of a block.
STENCIL_BOTH inline unsigned long long shared_doubles(unsigned rows, unsigned nx) {
  return 2ull * rows * nx + 2ull * rows;
}

/// The work of one thread. `Threads` says which it is and joins it with the others.
template <class Threads>
class Worker {
 public:
  PW_ON_DEVICE Worker(const Persistent& all, const Threads& threads, double* shared)
      : all_(all),
        threads_(threads),
        y0_(threads.block() * all.rows),
        rows_(all.ny - y0_ < all.rows ? all.ny - y0_ : all.rows),
        tile_(shared),
        west_(shared + 2ull * all.rows * all.nx),
        east_(west_ + all.rows) {
    const unsigned long long turns = 2ull * all.nx;
    Packet* below = all.inner + threads.block() * 2 * turns;
    north_ = threads.block() == 0 ? all.north : Lane{below - turns, below - 2 * turns, all.nx, all.rank};
    south_ = y0_ + rows_ == all.ny ? all.south : Lane{below, below + turns, all.nx, all.rank};
    east_thread_ = (all.nx - 1) % threads.count();
  }

  PW_ON_DEVICE void run() {
    load();
    if (!join(0)) return;
    for (unsigned long long n = 0; n < all_.steps; ++n) {
      one_step(static_cast<unsigned>(n), n + 1 == all_.steps);
      if (!join(n + 1)) return;
    }
    store();
  }

 private:
  /// The barrier of the block. False once a thread of it has given up.
  PW_ON_DEVICE bool join(unsigned long long steps_done) {
    if (threads_.any(failed_)) return false;
    if (steps_done % all_.batch == 0 && threads_.block() == 0 && threads_.index() == 0)
      all_.marks[steps_done / all_.batch] = peerway::device::detail::clock_ns();
    return true;
  }

  PW_ON_DEVICE const double* cells(unsigned n) const {
    return tile_ + (n & 1) * static_cast<unsigned long long>(all_.rows) * all_.nx;
  }
  PW_ON_DEVICE double* cells(unsigned n) {
    return tile_ + (n & 1) * static_cast<unsigned long long>(all_.rows) * all_.nx;
  }

  PW_ON_DEVICE void load() {
    for (unsigned x = threads_.index(); x < all_.nx; x += threads_.count()) {
      for (unsigned y = 0; y < rows_; ++y)
        cells(0)[y * all_.nx + x] = all_.from[(y0_ + y + 1) * all_.pitch + x + 1];
      if (all_.steps != 0) send(0, x, cells(0)[x], cells(0)[(rows_ - 1) * all_.nx + x]);
    }
  }

  PW_ON_DEVICE void store() {
    const double* last = cells(static_cast<unsigned>(all_.steps));
    for (unsigned x = threads_.index(); x < all_.nx; x += threads_.count())
      for (unsigned y = 0; y < rows_; ++y)
        all_.to[(y0_ + y + 1) * all_.pitch + x + 1] = last[y * all_.nx + x];
  }

  /// From the field of step n to that of n + 1. What needs nobody is computed while the packets are on their
  /// way.
  PW_ON_DEVICE void one_step(unsigned n, bool last) {
    receive_columns(n);
    for (unsigned x = threads_.index(); x < all_.nx; x += threads_.count())
      for (unsigned y = 1; y + 1 < rows_; ++y) compute(n, y, x, above(n, y, x), below(n, y, x));
    for (unsigned x = threads_.index(); x < all_.nx; x += threads_.count()) {
      double north = 0, south = 0;
      receive_rows(n, x, north, south);
      const double top = compute(n, 0, x, north, rows_ > 1 ? below(n, 0, x) : south);
      const double bottom = rows_ > 1 ? compute(n, rows_ - 1, x, above(n, rows_ - 1, x), south) : top;
      if (!last) send(n + 1, x, top, bottom);
    }
  }

  PW_ON_DEVICE double above(unsigned n, unsigned y, unsigned x) const {
    return cells(n)[(y - 1) * all_.nx + x];
  }
  PW_ON_DEVICE double below(unsigned n, unsigned y, unsigned x) const {
    return cells(n)[(y + 1) * all_.nx + x];
  }

  PW_ON_DEVICE double compute(unsigned n, unsigned y, unsigned x, double north, double south) {
    const double* row = cells(n) + y * all_.nx;
    const double west = x > 0 ? row[x - 1] : west_[y];
    const double east = x + 1 < all_.nx ? row[x + 1] : east_[y];
    return cells(n + 1)[y * all_.nx + x] = step(north, south, west, east, row[x]);
  }

  PW_ON_DEVICE unsigned long long turn(const Lane& lane, unsigned n) const {
    return static_cast<unsigned long long>((all_.flag + n) & 1) * lane.turn;
  }

  /// The first and last cell of a column; of the outer columns all cells.
  PW_ON_DEVICE void send(unsigned n, unsigned x, double top, double bottom) {
    if (north_.out != nullptr) put(north_, n, x, top);
    if (south_.out != nullptr) put(south_, n, x, bottom);
    if (x == 0 && all_.west.out != nullptr) send_column(all_.west, n, x);
    if (x + 1 == all_.nx && all_.east.out != nullptr) send_column(all_.east, n, x);
  }
  PW_ON_DEVICE void send_column(const Lane& lane, unsigned n, unsigned x) {
    for (unsigned y = 0; y < rows_; ++y) put(lane, n, y0_ + y, cells(n)[y * all_.nx + x]);
  }
  PW_ON_DEVICE void put(const Lane& lane, unsigned n, unsigned place, double value) const {
    const Packet packet = peerway::device::detail::make_packet(bits_of(value), all_.flag + n);
    peerway::device::detail::store_packet(lane.out + turn(lane, n) + place, packet);
  }

  /// The warps that have the outer columns fetch their neighbours, a lane for each row.
  PW_ON_DEVICE void receive_columns(unsigned n) {
    const unsigned warp = threads_.index() / Threads::kWarp;
    if (warp == 0) receive_column(n, all_.west, west_);
    if (warp == east_thread_ / Threads::kWarp) receive_column(n, all_.east, east_);
  }
  PW_ON_DEVICE void receive_column(unsigned n, const Lane& lane, double* values) {
    for (unsigned y = threads_.index() % Threads::kWarp; y < rows_; y += Threads::kWarp) {
      values[y] = 0;
      if (lane.in != nullptr) {
        const Packet* from = lane.in + turn(lane, n) + y0_ + y;
        values[y] = await(lane, from, peerway::device::detail::load_packet(from), n);
      }
    }
    threads_.sync_warp();
  }

  /// Both are looked at before either is waited for: the second is mostly there when the first is.
  PW_ON_DEVICE void receive_rows(unsigned n, unsigned x, double& north, double& south) {
    const Packet* above = north_.in == nullptr ? nullptr : north_.in + turn(north_, n) + x;
    const Packet* below = south_.in == nullptr ? nullptr : south_.in + turn(south_, n) + x;
    Packet from_above{}, from_below{};
    if (above != nullptr) from_above = peerway::device::detail::load_packet(above);
    if (below != nullptr) from_below = peerway::device::detail::load_packet(below);
    if (above != nullptr) north = await(north_, above, from_above, n);
    if (below != nullptr) south = await(south_, below, from_below, n);
  }

  PW_ON_DEVICE double await(const Lane& lane, const Packet* from, Packet seen, unsigned n) {
    const unsigned flag = all_.flag + n;
    peerway::device::detail::Deadline deadline(all_.guard, lane.rank, flag);
    while (!failed_ && !peerway::device::detail::arrived(seen, flag)) {
      threads_.pause();
      failed_ = !deadline.keep_waiting();
      seen = peerway::device::detail::load_packet(from);
    }
    return double_of(peerway::device::detail::data_of(seen));
  }

  PW_ON_DEVICE static Word bits_of(double value) {
    Word bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  PW_ON_DEVICE static double double_of(Word bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }

  const Persistent& all_;
  const Threads& threads_;
  unsigned y0_, rows_;
  double* tile_;  // the field of even steps, then that of odd ones
  double *west_, *east_;
  Lane north_, south_;
  unsigned east_thread_;  // has the last column
  bool failed_ = false;
};

}  // namespace stencil

#endif
