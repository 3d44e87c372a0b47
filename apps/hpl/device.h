// The device that holds the matrix and does the work on it: the CPU with a BLAS (device_host.cpp), or a GPU
// (device_gpu.cu). Matrices are stored by columns.
#ifndef HPL_DEVICE_H
#define HPL_DEVICE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grid.h"

namespace hpl {

/// Rows of a local matrix that receive the contents of others: the rows of the top, from `first` on, those of
/// `top`; the rows `to` those of `from`.
struct Moves {
  int64_t first = 0;
  std::vector<int64_t> top, to, from;
};

/// Rows of the top in some columns.
struct TopRows {
  double* values;
  int64_t ld;
};

/// Work is enqueued in queues, each processed in order; on the CPU it is done when the call returns. `main`
/// has the update, `ahead` the next panel, and `rows` the row exchanges before each piece of the update,
/// which run while the previous piece is updated. `panels` has broadcasts that the device starts.
enum Queue { kMain, kAhead, kRows, kPanels };
inline constexpr int kQueues = 4;

/// A position in a queue.
using Mark = uint64_t;

/// The head of a factorized panel, before its pivots. The pivot of a column is a global row.
struct PanelHead {
  int64_t info;  // 0, or 1 + the first column whose pivot was zero
  int64_t unused[7];
};

/// A panel of `width` columns in one piece of memory: head, pivots, the square factor of all its top rows (by
/// columns, width x width), and this rank's rows.
struct Panel {
  double* memory;
  int64_t width;
  int64_t rows, ld;  // of `body`
  bool top;          // the first rows of `body` are the top rows
  int64_t first;     // global index of the first column, and of the first row of the top

  static size_t room(int64_t width, int64_t ld) {
    return sizeof(double) * static_cast<size_t>(8 + (width + 7) / 8 * 8 + width * width + ld * width);
  }
  [[nodiscard]] size_t bytes() const { return room(width, ld); }
  [[nodiscard]] PanelHead* head() const { return reinterpret_cast<PanelHead*>(memory); }
  [[nodiscard]] int64_t* pivots() const { return reinterpret_cast<int64_t*>(memory + 8); }
  [[nodiscard]] double* square() const { return memory + 8 + (width + 7) / 8 * 8; }
  [[nodiscard]] double* body() const { return square() + width * width; }
  /// Returns the rows of `body` below the top.
  [[nodiscard]] double* below() const { return body() + (top ? width : 0); }
  [[nodiscard]] int64_t rows_below() const { return rows - (top ? width : 0); }
};

/// The properties of a GPU for factorizing panels together with others.
struct PanelUnit {
  char gpu[16];        // unique id of the GPU
  int64_t blocks = 0;  // number of its blocks that can wait for each other; 0: it cannot factorize panels
  int64_t ranks = 0;   // the largest number of ranks in a process column
};

/// The ranks of a process column, whose devices factorize a panel together.
struct PanelColumn {
  Axis rows;                 // of the matrix
  int64_t blocks;            // the smallest PanelUnit::blocks of all ranks
  std::vector<char*> rooms;  // addresses of each rank's memory for messages, for this device's kernels
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns the peak FLOP/s of this device, and how that was computed; 0 if it is unknown.
  [[nodiscard]] virtual std::pair<double, std::string> peak() const = 0;
  [[nodiscard]] virtual bool on_host() const = 0;
  /// Returns the bytes that can still be allocated.
  [[nodiscard]] virtual uint64_t room() const = 0;
  /// Returns the largest number of columns that are updated at once.
  [[nodiscard]] virtual int64_t widest() const = 0;
  /// Returns the bytes that the device itself needs for panels of `nb` columns; expect() allocates them.
  [[nodiscard]] virtual uint64_t own_bytes(int64_t nb) const = 0;
  virtual void expect(int64_t nb) = 0;

  /// Allocates zeroed memory, freed with the device.
  virtual void* allocate(size_t bytes) = 0;
  /// Allocates host memory that the device copies from and to quickly; also zeroed and freed with the device.
  virtual void* allocate_host(size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  /// Copies between any two memories, in the queue's order; complete when it returns.
  virtual void copy(Queue queue, void* to, const void* from, size_t bytes) = 0;
  /// Copies within the device's memory, in the queue's order.
  virtual void copy(Queue queue, double* to, int64_t to_ld, const double* from, int64_t from_ld, int64_t rows,
                    int64_t columns) = 0;

  /// Returns the driver's handle of the queue; null on the CPU, whose work is done when the call returns.
  [[nodiscard]] virtual void* handle(Queue queue) const = 0;
  virtual void wait(Queue queue) = 0;
  virtual Mark mark(Queue queue) = 0;
  /// Makes later work in the queue wait for everything before the mark.
  virtual void follow(Queue queue, Mark mark) = 0;
  /// Returns once everything before the mark is done.
  virtual void reach(Mark mark) = 0;

  /// c -= a b; c has m rows and n columns, a has k columns.
  virtual void gemm(Queue queue, int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld,
                    const double* b, int64_t b_ld, double* c, int64_t c_ld) = 0;
  /// Sets the triangle for the next solve_lower() of any queue: lower, with ones on its diagonal, m x m. The
  /// triangle before the previous one is not needed any more.
  virtual void take_triangle(int64_t m, const double* l) = 0;
  /// x = inv(l) b; both have n columns, and may be the same.
  virtual void solve_lower(Queue queue, int64_t n, TopRows b, TopRows x) = 0;
  /// x = inv(u) x; u is upper triangular.
  virtual void solve_upper(int64_t n, const double* u, int64_t u_ld, double* x) = 0;
  /// y -= a x, in the main queue.
  virtual void gemv(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) = 0;

  /// Sets what the next move_rows() of any queue moves. The moves before the previous ones are not needed any
  /// more.
  virtual void take_moves(const Moves& moves) = 0;
  /// Moves the rows in n columns, all at once. The rows of the top need not be in the matrix afterwards: they
  /// are where the result says, until the next solve_lower() reads them there.
  virtual TopRows move_rows(Queue queue, double* a, int64_t ld, int64_t n) = 0;
  virtual void gather_rows(Queue queue, double* out, int64_t out_ld, const double* a, int64_t ld,
                           const std::vector<int64_t>& rows, int64_t n) = 0;
  virtual void scatter_rows(Queue queue, double* a, int64_t ld, const std::vector<int64_t>& rows,
                            const double* in, int64_t in_ld, int64_t n) = 0;

  /// Fills this rank's part of [A b]. If `constant`, every element is the generator's first value.
  virtual void generate(const Layout& layout, double* a, bool constant) = 0;
  /// sums[i] += |a[i, 0]| + ... over n columns.
  virtual void add_magnitudes(int64_t m, int64_t n, const double* a, int64_t ld, double* sums) = 0;

  /// Returns the bytes of the pool for messages of factorize(), with panels of `nb` columns.
  [[nodiscard]] virtual size_t panel_room(int64_t nb) const = 0;
  [[nodiscard]] virtual PanelUnit panel_unit() const = 0;
  /// All ranks of the column call it before their first factorize(); the rooms must be zeroed.
  virtual void join(const PanelColumn& column) = 0;
  /// Starts the factorization of a panel in the queue `ahead`, where it waits for the other ranks of the
  /// column. Returns false, at all ranks alike, if only PanelFactorization of panel.h can do it.
  virtual bool factorize(const Panel& panel) = 0;

  /// Returns the seconds spent in large calls of gemm so far, and their FLOP.
  virtual std::pair<double, double> gemm_spent() = 0;
};

/// Makes the CPU device, with the BLAS in this file ("": the first that is found) and that many threads.
std::unique_ptr<Device> make_host_device(const std::string& blas, int threads);

}  // namespace hpl

/// The function that device_cuda.so and device_hip.so export. `blas` is the file of the GPU's BLAS, or "" for
/// the first that is found.
extern "C" hpl::Device* hpl_make_gpu_device(int local_rank, const char* blas);

#endif
