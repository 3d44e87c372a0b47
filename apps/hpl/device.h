// Where the matrix lies and the work on it is done: the CPU with a BLAS (device_host.cpp), or a GPU
// (device_cuda.cu). Matrices are stored by columns.
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

/// Rows of a local matrix that take over the contents of others: those of the top, from `first` on, those of
/// `top`; and `to` those of `from`.
struct Moves {
  int64_t first = 0;
  std::vector<int64_t> top, to, from;
};

/// Rows of the top of some columns.
struct TopRows {
  double* values;
  int64_t ld;
};

/// Work goes in queues, each done in order; on the CPU it is done when the call returns. The update is in
/// `main`, the next panel in `ahead`, and in `rows` the row exchanges before each piece of the update, which
/// run beside the piece before it. In `panels` are broadcasts that the device starts.
enum Queue { kMain, kAhead, kRows, kPanels };
inline constexpr int kQueues = 4;

/// How far a queue was filled at some time.
using Mark = uint64_t;

/// What a factorized panel says of itself, before its pivots; the pivot of a column is a global row.
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
  bool top;          // the first rows of `body` are the top ones
  int64_t first;     // global index of the first column, and of the first row of the top

  static size_t room(int64_t width, int64_t ld) {
    return sizeof(double) * static_cast<size_t>(8 + (width + 7) / 8 * 8 + width * width + ld * width);
  }
  [[nodiscard]] size_t bytes() const { return room(width, ld); }
  [[nodiscard]] PanelHead* head() const { return reinterpret_cast<PanelHead*>(memory); }
  [[nodiscard]] int64_t* pivots() const { return reinterpret_cast<int64_t*>(memory + 8); }
  [[nodiscard]] double* square() const { return memory + 8 + (width + 7) / 8 * 8; }
  [[nodiscard]] double* body() const { return square() + width * width; }
  /// The rows of `body` below the top.
  [[nodiscard]] double* below() const { return body() + (top ? width : 0); }
  [[nodiscard]] int64_t rows_below() const { return rows - (top ? width : 0); }
};

/// What a GPU is among those that factorize panels together.
struct PanelUnit {
  char gpu[16];        // which it is, of all there are
  int64_t blocks = 0;  // of its own that can wait for each other; 0: it cannot factorize panels
  int64_t ranks = 0;   // of a process column, the most
};

/// The ranks of a process column, whose devices factorize a panel together.
struct PanelColumn {
  Axis rows;                 // of the matrix
  int64_t blocks;            // PanelUnit's, the least of all
  std::vector<char*> rooms;  // where each rank has room for messages, as this device's kernels reach it
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// The most that this device could do in a second, in FLOP, and how that was computed; 0 where it is
  /// unknown.
  [[nodiscard]] virtual std::pair<double, std::string> peak() const = 0;
  [[nodiscard]] virtual bool on_host() const = 0;
  /// Bytes that can still be allocated.
  [[nodiscard]] virtual uint64_t room() const = 0;
  /// The most columns that are updated at once.
  [[nodiscard]] virtual int64_t widest() const = 0;
  /// What it needs itself for panels of `nb` columns, and that it makes ready for them.
  [[nodiscard]] virtual uint64_t own_bytes(int64_t nb) const = 0;
  virtual void expect(int64_t nb) = 0;

  /// Zeroed; freed with the device.
  virtual void* allocate(size_t bytes) = 0;
  /// In host memory that the device copies from and to quickly; likewise.
  virtual void* allocate_host(size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  /// Between any two memories, in the queue's order; it is done when it returns.
  virtual void copy(Queue queue, void* to, const void* from, size_t bytes) = 0;
  /// Within the device's memory, in the queue's order.
  virtual void copy(Queue queue, double* to, int64_t to_ld, const double* from, int64_t from_ld, int64_t rows,
                    int64_t columns) = 0;

  /// What the driver calls the queue; null on the CPU, whose work is done when the call returns.
  [[nodiscard]] virtual void* handle(Queue queue) const = 0;
  virtual void wait(Queue queue) = 0;
  virtual Mark mark(Queue queue) = 0;
  /// What is put into the queue from now on runs after all before the mark.
  virtual void follow(Queue queue, Mark mark) = 0;
  /// Returns once all before the mark has been done.
  virtual void reach(Mark mark) = 0;

  /// c -= a b; c has m rows and n columns, a has k columns.
  virtual void gemm(Queue queue, int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld,
                    const double* b, int64_t b_ld, double* c, int64_t c_ld) = 0;
  /// The triangle of the next solve_lower() of any queue: lower, with ones on its diagonal, m x m. That of
  /// the last but one is not needed any more.
  virtual void take_triangle(int64_t m, const double* l) = 0;
  /// x = inv(l) b; both have n columns, and may be the same.
  virtual void solve_lower(Queue queue, int64_t n, TopRows b, TopRows x) = 0;
  /// x = inv(u) x; u is upper triangular.
  virtual void solve_upper(int64_t n, const double* u, int64_t u_ld, double* x) = 0;
  /// y -= a x, in the main queue.
  virtual void gemv(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) = 0;

  /// What the next move_rows() of any queue moves. What was given last but one is not needed any more.
  virtual void take_moves(const Moves& moves) = 0;
  /// Moves them in n columns, all at once. What belongs to the top need not be there: it is where the result
  /// says, until the next solve_lower() from there.
  virtual TopRows move_rows(Queue queue, double* a, int64_t ld, int64_t n) = 0;
  virtual void gather_rows(Queue queue, double* out, int64_t out_ld, const double* a, int64_t ld,
                           const std::vector<int64_t>& rows, int64_t n) = 0;
  virtual void scatter_rows(Queue queue, double* a, int64_t ld, const std::vector<int64_t>& rows,
                            const double* in, int64_t in_ld, int64_t n) = 0;

  /// Fills this rank's part of [A b]; every element is the generator's first if `constant`.
  virtual void generate(const Layout& layout, double* a, bool constant) = 0;
  /// sums[i] += |a[i, 0]| + ... over n columns.
  virtual void add_magnitudes(int64_t m, int64_t n, const double* a, int64_t ld, double* sums) = 0;

  /// Bytes of the pool for messages of factorize(), with panels of `nb` columns.
  [[nodiscard]] virtual size_t panel_room(int64_t nb) const = 0;
  [[nodiscard]] virtual PanelUnit panel_unit() const = 0;
  /// All ranks of the column call it before their first factorize(); the rooms are zeroed.
  virtual void join(const PanelColumn& column) = 0;
  /// Starts the factorization of a panel in the queue `ahead`, where it waits for the other ranks of the
  /// column; false, at all of them alike, where only PanelFactorization of panel.h can.
  virtual bool factorize(const Panel& panel) = 0;

  /// Seconds spent in large calls of gemm so far, and their FLOP.
  virtual std::pair<double, double> gemm_spent() = 0;
};

/// The CPU, with the BLAS of this file ("": the first that is found) and as many threads.
std::unique_ptr<Device> make_host_device(const std::string& blas, int threads);

}  // namespace hpl

/// What device_cuda.so exports. `cublas` is the library's file, or "" for the first that is found.
extern "C" hpl::Device* hpl_make_cuda_device(int local_rank, const char* cublas);

#endif
