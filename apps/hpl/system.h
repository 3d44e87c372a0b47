// One system of equations: where its matrix and its messages lie, and what is known of its solution.
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

/// What may be chosen for a run.
struct Method {
  int leaf = 8;   // columns of a panel at which the recursion ends: NBMIN
  int depth = 1;  // of the look-ahead: 0 or 1
  Looking pfact = Looking::right, rfact = Looking::right;
  Sending sending;
};

/// Seconds of this rank, by its clock on the host.
struct Phases {
  double panel = 0, broadcast = 0, swap = 0, update = 0, solve = 0;
};

/// The offsets of all messages, the same at all ranks.
struct Rooms {
  size_t panel_slot;
  SwapRooms swap;
  PivotRoom pivot;
  size_t leaf;  // of panels that devices factorize
  size_t solve, device_bytes, cpu_bytes;
  static Rooms of(const Layout& layout, const Device& device);
};

/// Bytes that a rank allocates on its device; the most of all ranks.
uint64_t bytes_needed(const Layout& layout, const Device& device);

class System {
 public:
  System(Comm& comm, Device& device, const Layout& layout);
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  /// The matrix and the right-hand side; a singular matrix if `constant`.
  void generate(bool constant);
  /// L and U in place of A, and inv(L) P b in place of b. Returns 0, or 1 + the column where a pivot is zero.
  int64_t factorize(const Method& method, Phases& phases);
  void solve(Phases& phases);
  /// HPL's: ||Ax-b|| / (eps (||A|| ||x|| + ||b||) N), infinity norms. Generates the matrix once more.
  double residual(bool constant);
  /// Host memory for a panel of the device. Where all panels need it, it is there before the clock starts: a
  /// GPU's driver takes a fifth of a second for half a GiB.
  double* staged_panel();
  /// The whole x, at all ranks.
  std::vector<double> solution();
  [[nodiscard]] Slots panel_slots() const { return Broadcast::slots(0, rooms.panel_slot); }
  /// Collective: whether a stream can start the broadcasts of panels; they are then ready for that.
  bool prepare_panels();
  /// Measures broadcasts of the first panel's size, and gives the way with the least time: of these, which
  /// differ only where a row has ranks enough. A GPU has a product to compute meanwhile, as in the run, whose
  /// result is left in the matrix.
  Sending quickest(const std::vector<Sending>& ways);

  Comm& comm;
  Device& device;
  const Layout layout;
  const Rooms rooms;
  double *a = nullptr, *top = nullptr, *x = nullptr, *y = nullptr;  // of the device
  double *x_host = nullptr, *y_host = nullptr;
  Pool device_pool{}, cpu_pool{};
  bool joined = false;     // the devices of each column factorize panels together
  std::string cpu_panels;  // why CPUs factorize panels, or some; "" if the devices do

 private:
  /// The seconds of this rank: the median of a few times.
  double time_of(const Sending& sending, int64_t& number);

  double* staged_ = nullptr;
};

}  // namespace hpl

#endif
