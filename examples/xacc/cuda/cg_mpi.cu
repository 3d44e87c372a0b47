// cg.c in CUDA and MPI by hand: each rank has a block of rows on its GPU. It multiplies its own part of p
// while it sends that to the others, and then theirs. The host adds the scalar products of the ranks, so it
// waits for the GPU three times a step. Needs CUDA-aware MPI.
//
//   nvcc -O3 -std=c++17 -arch=native -ccbin mpicxx -DRANKS=2 cg_mpi.cu -o cg && mpirun -n 2 ./cg
#include "cg.cuh"
#include "ranks.cuh"

/// The rank's rows; p is its part of `whole`, which has all NA elements.
struct Vectors {
  int rows;
  double *x, *z, *q, *r, *p, *whole;
};

/// A sum that blocks add to. The last block moves it to where the host reads it, which takes less time than a
/// copy behind the kernel.
struct Sum {
  double* value;
  unsigned* blocks_done;
  double* on_host;
};

__device__ void add_of_block(Sum sum, double mine) {
  mine = combined(mine, [](double x, double y) { return x + y; }, threadIdx.x, kThreads);
  if (threadIdx.x != 0) return;
  atomicAdd(sum.value, mine);
  __threadfence();
  if (atomicInc(sum.blocks_done, gridDim.x - 1) != gridDim.x - 1) return;
  const unsigned long long bits = atomicExch(reinterpret_cast<unsigned long long*>(sum.value), 0);
  *sum.on_host = __longlong_as_double((long long)bits);
}

/// z = 0, p = r = x, and r·r
__global__ void start(Vectors v, Sum rho) {
  const int i = thread_of_grid();
  double x = 0;
  if (i < v.rows) x = v.x[i], v.z[i] = 0, v.p[i] = v.r[i] = x;
  add_of_block(rho, x * x);
}

enum class Columns { kOwn, kOthers };

/// q = A p for the columns of this rank; then q += A p for those of the others, and p·q.
template <Columns columns>
__global__ void __launch_bounds__(kThreads) multiply(Matrix a, const int* end, Vectors v, Sum pq) {
  double mine = 0;
  for (int row = thread_of_grid() / 32; row < v.rows; row += gridDim.x * (kThreads / 32)) {
    double sum = product(a.column, a.element, v.whole, __ldg(a.begin + row), __ldg(end + row));
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
    if (threadIdx.x % 32 != 0) continue;
    if (columns == Columns::kOthers) sum += v.q[row], mine += sum * v.p[row];
    v.q[row] = sum;
  }
  if (columns == Columns::kOthers) add_of_block(pq, mine);
}

/// r -= alpha q, and r·r
__global__ void advance(Vectors v, double alpha, Sum rho) {
  const int i = thread_of_grid();
  double r = 0;
  if (i < v.rows) v.r[i] = r = v.r[i] - alpha * v.q[i];
  add_of_block(rho, r * r);
}

/// z += alpha p, p = r + beta p
__global__ void turn(Vectors v, double alpha, double beta) {
  const int i = thread_of_grid();
  if (i >= v.rows) return;
  const double p = v.p[i];
  v.z[i] += alpha * p;
  v.p[i] = v.r[i] + beta * p;
}

__global__ void dot(const double* v, const double* w, int rows, Sum sum) {
  const int i = thread_of_grid();
  add_of_block(sum, i < rows ? v[i] * w[i] : 0);
}

/// x = z / |z|
__global__ void scale(Vectors v, double size) {
  const int i = thread_of_grid();
  if (i < v.rows) v.x[i] = v.z[i] / size;
}

/// The rows of a rank on its GPU; in each row the columns of the rank come first, up to `middle`.
struct Rank {
  int begin, rows;
  Matrix own, others;
  const int *middle, *end;
};

Rank rank_on_gpu(int rank) {
  const int first = block_begin(rank, NA), last = block_begin(rank + 1, NA);
  std::vector<int> bounds{0}, middle, columns;
  std::vector<double> elements;
  for (int row = first; row < last; ++row)
    for (const bool own : {true, false}) {
      for (int e = begin[row]; e < begin[row + 1]; ++e) {
        if ((first <= column[e] && column[e] < last) != own) continue;
        columns.push_back(column[e]);
        elements.push_back(element[e]);
      }
      (own ? middle : bounds).push_back((int)columns.size());
    }
  const int* const begins = on_gpu(bounds.data(), bounds.size());
  const int* const middles = on_gpu(middle.data(), middle.size());
  const int* const where = on_gpu(columns.data(), columns.size());
  const double* const values = on_gpu(elements.data(), elements.size());
  return {first, last - first, {begins, where, values}, {middles, where, values}, middles, begins + 1};
}

class Solver {
 public:
  explicit Solver(int rank) : rank_(rank_on_gpu(rank)) {
    const std::vector<double> ones(NA, 1.0);
    v_.rows = rank_.rows;
    for (double** vector : {&v_.x, &v_.z, &v_.q, &v_.r}) *vector = on_gpu(ones.data(), v_.rows);
    v_.whole = on_gpu(ones.data(), NA);
    v_.p = v_.whole + rank_.begin;
    const double zero = 0;
    const unsigned none = 0;
    CHECK(cudaMallocHost(&sums_on_host_, 2 * sizeof *sums_on_host_));
    for (int n = 0; n < 2; ++n) sums_[n] = {on_gpu(&zero, 1), on_gpu(&none, 1), sums_on_host_ + n};
    CHECK(cudaEventCreateWithFlags(&p_is_new_, cudaEventDisableTiming));
    for (int other = 0, n = 0; other < RANKS; ++other) {
      if (other == rank) continue;
      const int from = block_begin(other, NA), count = block_begin(other + 1, NA) - from;
      MPI_Recv_init(v_.whole + from, count, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &messages_[n++]);
      MPI_Send_init(v_.p, v_.rows, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &messages_[n++]);
    }
    blocks_ = (v_.rows + kThreads - 1) / kThreads;
    blocks_of_own_ = blocks_of_rows(multiply<Columns::kOwn>, v_.rows);
    blocks_of_others_ = blocks_of_rows(multiply<Columns::kOthers>, v_.rows);
  }

  void start_with_ones() {
    const std::vector<double> ones(v_.rows, 1.0);
    CHECK(cudaMemcpy(v_.x, ones.data(), v_.rows * sizeof(double), cudaMemcpyDefault));
  }

  /// z: an approximation of A^-1 x; then x = z / |z|. Returns the old x·z.
  double iterate() {
    start<<<blocks_, kThreads>>>(v_, sums_[0]);
    double rho = total();
    for (int step = 0; step < STEPS; ++step) {
      const double alpha = rho / multiplied();
      advance<<<blocks_, kThreads>>>(v_, alpha, sums_[0]);
      const double next = total();
      turn<<<blocks_, kThreads>>>(v_, alpha, next / rho);
      rho = next;
    }
    dot<<<blocks_, kThreads>>>(v_.x, v_.z, v_.rows, sums_[0]);
    dot<<<blocks_, kThreads>>>(v_.z, v_.z, v_.rows, sums_[1]);
    const double xz = total(2);
    scale<<<blocks_, kThreads>>>(v_, std::sqrt(sums_on_host_[1]));
    return xz;
  }

 private:
  /// q = A p; returns p·q. MPI sends p as soon as it is new.
  double multiplied() {
    CHECK(cudaEventRecord(p_is_new_));
    multiply<Columns::kOwn><<<blocks_of_own_, kThreads>>>(rank_.own, rank_.middle, v_, sums_[0]);
    CHECK(cudaEventSynchronize(p_is_new_));
    MPI_Startall(kMessages, messages_);
    MPI_Waitall(kMessages, messages_, MPI_STATUSES_IGNORE);
    multiply<Columns::kOthers><<<blocks_of_others_, kThreads>>>(rank_.others, rank_.end, v_, sums_[0]);
    return total();
  }

  /// Waits for the GPU and adds the first sums of all ranks; returns the first one.
  double total(int count = 1) {
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(nullptr));
    sum_of_ranks(sums_on_host_, count);
    return sums_on_host_[0];
  }

  static constexpr int kMessages = 2 * (RANKS - 1);
  Rank rank_;
  Vectors v_;
  Sum sums_[2];
  double* sums_on_host_;
  MPI_Request messages_[kMessages];
  cudaEvent_t p_is_new_;
  int blocks_, blocks_of_own_, blocks_of_others_;
};

int main(int argc, char** argv) {
  const Mpi mpi(&argc, &argv);
  make_matrix();
  Solver solver(mpi.rank());
  solver.iterate();  // NPB times the iterations after the first, from the same x
  solver.start_with_ones();
  double xz = 0;
  const double from = seconds_when_all_done();
  for (int k = 0; k < ITERATIONS; ++k) xz = solver.iterate();
  const double seconds = seconds_when_all_done() - from;
  return mpi.rank() == 0 ? report(xz, seconds) : 0;
}
