// The CPU as a device: a BLAS, and loops over columns that keep the moved data in the cache.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <sstream>
#include <stdexcept>

#include "blas.h"
#include "device.h"
#include "random.h"

namespace hpl {

namespace {

constexpr size_t kHuge = size_t{2} << 20;

class HostDevice : public Device {
 public:
  HostDevice(const std::string& file, int threads) : blas_(load_blas(file, threads)) {}
  ~HostDevice() override {
    for (void* memory : memory_) std::free(memory);
  }

  std::string name() const override { return "CPU, " + blas_.file; }
  std::pair<double, std::string> peak() const override { return {0, ""}; }
  bool on_host() const override { return true; }
  /// Returns MemAvailable, or the rest of the control group's limit if that is less.
  uint64_t room() const override {
    std::ifstream file("/proc/meminfo");
    uint64_t room = std::numeric_limits<uint64_t>::max();
    for (std::string line; std::getline(file, line);) {
      uint64_t kib = 0;
      if (std::istringstream(line.substr(line.find(':') + 1)) >> kib; line.starts_with("MemAvailable"))
        room = kib << 10;
    }
    uint64_t most = 0, used = 0;
    if (std::ifstream("/sys/fs/cgroup/memory.max") >> most &&
        std::ifstream("/sys/fs/cgroup/memory.current") >> used)
      room = std::min(room, most > used ? most - used : 0);
    return room;
  }

  int64_t widest() const override { return std::numeric_limits<int64_t>::max(); }
  uint64_t own_bytes(int64_t) const override { return 0; }
  void expect(int64_t) override {}

  void* allocate(size_t bytes) override {
    const size_t whole = (bytes + kHuge - 1) / kHuge * kHuge;
    void* memory = std::aligned_alloc(kHuge, whole);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, whole, MADV_HUGEPAGE);
    std::memset(memory, 0, whole);
    memory_.push_back(memory);
    return memory;
  }
  void* allocate_host(size_t bytes) override { return allocate(bytes); }
  void free(void* memory) override {
    std::erase(memory_, memory);
    std::free(memory);
  }
  void copy(Queue, void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(Queue, double* to, int64_t to_ld, const double* from, int64_t from_ld, int64_t rows,
            int64_t columns) override {
    for (int64_t j = 0; j < columns; ++j) std::copy_n(from + j * from_ld, rows, to + j * to_ld);
  }
  [[nodiscard]] void* handle(Queue) const override { return nullptr; }
  void wait(Queue) override {}
  Mark mark(Queue) override { return 0; }
  void follow(Queue, Mark) override {}
  void reach(Mark) override {}

  void gemm(Queue, int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b,
            int64_t b_ld, double* c, int64_t c_ld) override {
    const auto began = std::chrono::steady_clock::now();
    blas_.minus_product(m, n, k, a, a_ld, b, b_ld, c, c_ld);
    spent_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    flop_ += 2.0 * double(m) * double(n) * double(k);
  }
  void take_triangle(int64_t m, const double* l) override { triangle_ = {m, l}; }
  void solve_lower(Queue queue, int64_t n, TopRows b, TopRows x) override {
    if (b.values != x.values) copy(queue, x.values, x.ld, b.values, b.ld, triangle_.m, n);
    blas_.solve('L', triangle_.m, n, triangle_.l, triangle_.m, x.values, x.ld);
  }
  void solve_upper(int64_t n, const double* u, int64_t u_ld, double* x) override {
    blas_.solve('U', n, 1, u, u_ld, x, n);
  }
  void gemv(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) override {
    blas_.minus_vector(m, n, a, a_ld, x, y);
  }

  void take_moves(const Moves& moves) override { moves_ = moves; }
  TopRows move_rows(Queue, double* a, int64_t ld, int64_t n) override {
    const size_t count = moves_.to.size(), width = moves_.top.size();
    held_.resize(width + count);
    double* column = a;
    for (int64_t j = 0; j < n; ++j, column += ld) {
      for (size_t i = 0; i < width; ++i) held_[i] = column[moves_.top[i]];
      for (size_t i = 0; i < count; ++i) held_[width + i] = column[moves_.from[i]];
      std::copy_n(held_.begin(), width, column + moves_.first);
      for (size_t i = 0; i < count; ++i) column[moves_.to[i]] = held_[width + i];
    }
    return {a + moves_.first, ld};
  }
  void gather_rows(Queue, double* out, int64_t out_ld, const double* a, int64_t ld,
                   const std::vector<int64_t>& rows, int64_t n) override {
    for (int64_t j = 0; j < n; ++j)
      for (size_t i = 0; i < rows.size(); ++i) out[j * out_ld + int64_t(i)] = a[j * ld + rows[i]];
  }
  void scatter_rows(Queue, double* a, int64_t ld, const std::vector<int64_t>& rows, const double* in,
                    int64_t in_ld, int64_t n) override {
    for (int64_t j = 0; j < n; ++j)
      for (size_t i = 0; i < rows.size(); ++i) a[j * ld + rows[i]] = in[j * in_ld + int64_t(i)];
  }

  void generate(const Layout& layout, double* a, bool constant) override {
    const Axis &rows = layout.rows, &columns = layout.columns;
    for (int64_t j = 0; j < columns.size(); ++j) {
      for (int64_t i = 0; i < rows.size(); i += rows.block) {
        const auto at = static_cast<uint64_t>(columns.global(j) * layout.n + rows.global(i));
        uint64_t x = constant ? kSeed : steps(at)(kSeed);
        for (int64_t r = i; r < std::min(i + rows.block, rows.size()); ++r, x = constant ? x : kStep(x))
          a[j * layout.ld + r] = as_element(x);
      }
    }
  }
  void add_magnitudes(int64_t m, int64_t n, const double* a, int64_t ld, double* sums) override {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) sums[i] += std::abs(a[j * ld + i]);
  }

  size_t panel_room(int64_t) const override { return 0; }
  PanelUnit panel_unit() const override { return {}; }
  void join(const PanelColumn&) override {}
  bool factorize(const Panel&) override { return false; }
  std::pair<double, double> gemm_spent() override { return {spent_, flop_}; }

 private:
  const Blas& blas_;
  std::vector<void*> memory_;
  struct {
    int64_t m = 0;
    const double* l = nullptr;
  } triangle_;
  Moves moves_;
  std::vector<double> held_;
  double spent_ = 0, flop_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_host_device(const std::string& file, int threads) {
  return std::make_unique<HostDevice>(file, threads);
}

}  // namespace hpl
