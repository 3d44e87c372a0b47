// One system of equations: the places of its matrix and its messages, and its solution.
#ifndef HPL_SYSTEM_H
#define HPL_SYSTEM_H

#include <cstdint>
#include <string>
#include <vector>

#include "broadcast.h"
#include "comm.h"
#include "device.h"
#include "grid.h"
#include "panel.h"
#include "swap.h"

namespace hpl {

/// The choices for a run.
struct Method {
  int leaf = 8;   // number of columns at which the recursion ends: NBMIN
  int depth = 1;  // of the look-ahead: 0 or 1
  Looking pfact = Looking::right, rfact = Looking::right;
  Sending sending;
};

/// Seconds of this rank, measured on the host.
struct Phases {
  double panel = 0, broadcast = 0, swap = 0, update = 0, solve = 0;
};

/// The offsets of all messages, the same at all ranks.
struct Rooms {
  size_t panel_slot;
  SwapRooms swap;
  PivotRoom pivot;
  size_t leaf;  // for panels that devices factorize
  size_t solve, device_bytes, cpu_bytes;
  static Rooms of(const Layout& layout, const Device& device);
};

/// Returns the bytes that a rank allocates on its device; the maximum over all ranks.
uint64_t bytes_needed(const Layout& layout, const Device& device);

class System {
 public:
  System(Comm& comm, Device& device, const Layout& layout);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  /// Generates the matrix and the right-hand side; a singular matrix if `constant`.
  void generate(bool constant);
  /// Replaces A by L and U, and b by inv(L) P b. Returns 0, or 1 + the column whose pivot is zero.
  int64_t factorize(const Method& method, Phases& phases);
  void solve(Phases& phases);
  /// Returns HPL's residual: ||Ax-b|| / (eps (||A|| ||x|| + ||b||) N), infinity norms. Generates the matrix
  /// again.
  double residual(bool constant);
  /// Returns host memory for a panel of the device. If all panels need it, it is allocated before the clock
  /// starts: a GPU's driver takes a fifth of a second for half a GiB.
  double* staged_panel();
  /// Returns the whole x, at all ranks.
  std::vector<double> solution();
  [[nodiscard]] Slots panel_slots() const { return Broadcast::slots(0, rooms.panel_slot); }
  /// Collective: prepares that a stream starts the broadcasts of panels; returns whether that is possible.
  bool prepare_panels();
  /// Measures broadcasts of the first panel's size in each of these ways, and returns the fastest. They
  /// differ only if a row has enough ranks. Meanwhile a GPU computes a product, like in the run; its result
  /// is left in the matrix.
  Sending quickest(const std::vector<Sending>& ways);

  Comm& comm;
  Device& device;
  const Layout layout;
  const Rooms rooms;
  double *a = nullptr, *top = nullptr, *x = nullptr, *y = nullptr;  // in device memory
  double *x_host = nullptr, *y_host = nullptr;
  Pool device_pool{}, cpu_pool{};
  bool joined = false;     // the devices of each column factorize panels together
  std::string cpu_panels;  // why CPUs factorize some or all panels; "" if the devices do

 private:
  /// Returns the seconds of this rank: the median of a few measurements.
  double time_of(const Sending& sending, int64_t& number);

  double* staged_ = nullptr;
};

}  // namespace hpl

#endif
