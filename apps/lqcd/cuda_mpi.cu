/* Lattice QCD by CUDA and MPI, written by hand: computes the same as serial.c. One thread per site,
 * persistent requests of CUDA-aware MPI. Arrays are 1-D. A direction that has several processes has a halo
 * of one site on each side; others wrap around in the kernel. Faces along t are sent from the field, those
 * along z are packed.
 *
 * LQCD_OVERLAP=1 computes the sites that need no halo while the messages are under way. */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <cuda_runtime.h>
#include <mpi.h>

#include "lattice.h"

/* Here, a row is a pointer to element 0 of a site. */
#ifdef ROWS
#define HOP_READ(site, unused, j, c, re, im)                \
  const double re = __ldg(site + ((j) * 3 + (c)) * 2 * NX); \
  const double im = __ldg(site + (((j) * 3 + (c)) * 2 + 1) * NX)
#else
#define HOP_READ(site, unused, j, c, re, im)                                               \
  const double2 re##_pair = __ldg(reinterpret_cast<const double2*>(site) + (j) * 3 + (c)); \
  const double re = re##_pair.x, im = re##_pair.y
#endif
#include "hop.h"
#include "program.h"

#ifndef LQCD_THREADS
#define LQCD_THREADS 128  // per block
#endif
#ifndef COPY_BYTES
#define COPY_BYTES (size_t(1) << 30)
#endif

namespace {

constexpr int LT = NT / PT, LZ = NZ / PZ;
constexpr int kLocalSites = LT * LZ * NY * NX;
constexpr int kRow = NX * SPINOR;
constexpr size_t kRows = size_t(LT + 2 * HT) * (LZ + 2 * HZ) * NY;
constexpr size_t kFieldSize = kRows * kRow, kLinks = kRows * NX * LINK;  // doubles; links of one direction
constexpr int kFaceT = LZ * NY * kRow, kFaceZ = LT * NY * kRow;
constexpr int kThreads = LQCD_THREADS, kReduceThreads = 256, kMostBlocks = 1024;

enum Part { kAll, kInside, kEdge };

int rank_t, rank_z, rank;
bool overlapped;
cudaStream_t stream;
double *u, *x, *b, *r, *p, *v, *w;
double *partial, *reduced;  // sums of blocks; the result, in host memory
unsigned* arrived;
double *sent_z, *received_z;

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "lqcd: %s failed: %s\n", what, cudaGetErrorString(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void finish() {
  must(cudaGetLastError(), "a launch");
  must(cudaStreamSynchronize(stream), "a kernel");
  MPI_Barrier(MPI_COMM_WORLD);
}

__host__ __device__ constexpr int row_of(int t, int z, int y) {
  return ((t + HT) * (LZ + 2 * HZ) + z + HZ) * NY + y;
}

/* The offset of element 0 of a site; with ROWS, the other elements follow at distances of NX. */
__host__ __device__ constexpr size_t at(int row, int x, int elements) {
#ifdef ROWS
  return size_t(row) * elements * NX + x;
#else
  return (size_t(row) * NX + x) * elements;
#endif
}

#ifdef ROWS
constexpr int kStride = NX;
#else
constexpr int kStride = 1;
#endif

template <Part part>
__global__ void __launch_bounds__(kThreads)
    hop_kernel(double* __restrict__ to, const double* __restrict__ u, const double* __restrict__ from) {
  const int site = blockIdx.x * blockDim.x + threadIdx.x;
  if (site >= kLocalSites) return;
  const int x = site % NX, y = site / NX % NY, z = site / (NX * NY) % LZ, t = site / (NX * NY * LZ);
  if (part != kAll) {
    const bool edge = (HT && (t == 0 || t == LT - 1)) || (HZ && (z == 0 || z == LZ - 1));
    if (edge != (part == kEdge)) return;
  }
  const int tp = HT || t + 1 < LT ? t + 1 : 0, tm = HT || t > 0 ? t - 1 : LT - 1;
  const int zp = HZ || z + 1 < LZ ? z + 1 : 0, zm = HZ || z > 0 ? z - 1 : LZ - 1;
  const int yp = y + 1 < NY ? y + 1 : 0, ym = y > 0 ? y - 1 : NY - 1;
  const int xp = x + 1 < NX ? x + 1 : 0, xm = x > 0 ? x - 1 : NX - 1;
  const int here = row_of(t, z, y);
  HOP_LOCALS;
  FORWARD_X(u + at(here, x, LINK), 0, from + at(here, xp, SPINOR), 0)
  BACKWARD_X(u + at(here, xm, LINK), 0, from + at(here, xm, SPINOR), 0)
  FORWARD_Y(u + kLinks + at(here, x, LINK), 0, from + at(row_of(t, z, yp), x, SPINOR), 0)
  BACKWARD_Y(u + kLinks + at(row_of(t, z, ym), x, LINK), 0, from + at(row_of(t, z, ym), x, SPINOR), 0)
  FORWARD_Z(u + 2 * kLinks + at(here, x, LINK), 0, from + at(row_of(t, zp, y), x, SPINOR), 0)
  BACKWARD_Z(u + 2 * kLinks + at(row_of(t, zm, y), x, LINK), 0, from + at(row_of(t, zm, y), x, SPINOR), 0)
  FORWARD_T(u + 3 * kLinks + at(here, x, LINK), 0, from + at(row_of(tp, z, y), x, SPINOR), 0)
  BACKWARD_T(u + 3 * kLinks + at(row_of(tm, z, y), x, LINK), 0, from + at(row_of(tm, z, y), x, SPINOR), 0)
  const double* mine = from + at(here, x, SPINOR);
  double* out = to + at(here, x, SPINOR);
#pragma unroll
  for (int s = 0; s < 4; s++)
#pragma unroll
    for (int c = 0; c < 3; c++) {
      const int k = (s * 3 + c) * 2, other = (s + 2) % 4;
      HOP_READ(mine, 0, other, c, re, im);
#ifdef ROWS
      out[k * kStride] = re - KAPPA * sum[other][c][0];
      out[(k + 1) * kStride] = im - KAPPA * sum[other][c][1];
#else
      reinterpret_cast<double2*>(out)[k / 2] =
          make_double2(re - KAPPA * sum[other][c][0], im - KAPPA * sum[other][c][1]);
#endif
    }
}

/* ---- halos ---- */

/* Packs the rows of z = 0 and z = LZ - 1 into a buffer, or unpacks a buffer into the halos beyond them. */
__global__ void pack_kernel(double2* __restrict__ buffer, const double2* __restrict__ field) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y, side = blockIdx.z;
  constexpr int run = NY * kRow / 2;
  if (i >= run) return;
  buffer[(size_t(side) * LT + t) * run + i] =
      __ldg(field + size_t(row_of(t, side ? LZ - 1 : 0, 0)) * (kRow / 2) + i);
}

__global__ void unpack_kernel(double2* __restrict__ field, const double2* __restrict__ buffer) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y, side = blockIdx.z;
  constexpr int run = NY * kRow / 2;
  if (i >= run) return;
  field[size_t(row_of(t, side ? LZ : -1, 0)) * (kRow / 2) + i] =
      __ldg(buffer + (size_t(side) * LT + t) * run + i);
}

/* The messages of one field. */
struct Halo {
  double* field = nullptr;
  MPI_Request requests[8];
  int count = 0;

  void pair(double* sent, int to, double* received, int from, int size, int tag) {
    MPI_Recv_init(received, size, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, &requests[count++]);
    MPI_Send_init(sent, size, MPI_DOUBLE, to, tag, MPI_COMM_WORLD, &requests[count++]);
  }
  void prepare(double* of) {
    field = of;
    const int before_t = (rank_t + PT - 1) % PT * PZ + rank_z, after_t = (rank_t + 1) % PT * PZ + rank_z;
    const int before_z = rank_t * PZ + (rank_z + PZ - 1) % PZ, after_z = rank_t * PZ + (rank_z + 1) % PZ;
    const auto row = [&](int t) { return field + size_t(row_of(t, 0, 0)) * kRow; };
    if (HT) {
      pair(row(0), before_t, row(LT), after_t, kFaceT, 0);
      pair(row(LT - 1), after_t, row(-HT), before_t, kFaceT, 1);
    }
    if (HZ) {
      pair(sent_z, before_z, received_z + kFaceZ, after_z, kFaceZ, 2);
      pair(sent_z + kFaceZ, after_z, received_z, before_z, kFaceZ, 3);
    }
  }
  void start() {
    if (!count) return;
    const dim3 blocks((NY * kRow / 2 + kThreads - 1) / kThreads, LT, 2);
    if (HZ) {
      pack_kernel<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<double2*>(sent_z),
                                                   reinterpret_cast<const double2*>(field));
    }
    must(cudaStreamSynchronize(stream), "what a halo is made of");
    MPI_Startall(count, requests);
  }
  void wait() {
    if (!count) return;
    const dim3 blocks((NY * kRow / 2 + kThreads - 1) / kThreads, LT, 2);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (HZ) {
      unpack_kernel<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<double2*>(field),
                                                     reinterpret_cast<const double2*>(received_z));
    }
  }
};

Halo halo_x, halo_p, halo_w, halo_r;

template <Part part>
void launch_hop(double* to, const double* from) {
  constexpr int blocks = (kLocalSites + kThreads - 1) / kThreads;
  hop_kernel<part><<<blocks, kThreads, 0, stream>>>(to, u, from);
}

/* to = H from, for a field with a halo */
void hop(double* to, Halo& from) {
  from.start();
  if (overlapped && from.count) {
    launch_hop<kInside>(to, from.field);
    from.wait();
    launch_hop<kEdge>(to, from.field);
  } else {
    from.wait();
    launch_hop<kAll>(to, from.field);
  }
}

/* ---- linear algebra, by pairs of doubles ---- */

constexpr int kPlanePairs = kFaceT / 2, kPairs = LT * kPlanePairs;

/* The place of pair i, not counting halos. */
__device__ int pair_at(int i) {
  return i + (i / kPlanePairs * 2 * HZ + HZ + HT * (LZ + 2 * HZ)) * (NY * kRow / 2);
}

__device__ double block_sum(double value) {
  __shared__ double warps[kReduceThreads / 32];
  for (int step = 16; step; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < kReduceThreads / 32; i++) sum += warps[i];
  __syncthreads();
  return sum;
}

/* result = the sum of value(pair) over pairs from..from + count; the last block adds the sums of all. */
template <class Value>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_kernel(double* result, double* partial, unsigned* arrived, int from, int count, Value value) {
  __shared__ bool last;
  double sum = 0;
  for (int i = blockIdx.x * kReduceThreads + threadIdx.x; i < count; i += gridDim.x * kReduceThreads)
    sum += value(pair_at(from + i));
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  sum = 0;
  for (int i = threadIdx.x; i < int(gridDim.x); i += kReduceThreads) sum += __ldcg(partial + i);
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

template <class Action>
__global__ void each_kernel(Action action) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kPairs) action(pair_at(i));
}

template <class Value>
double sum_here(int from, int count, Value value) {
  const int blocks = (count + kReduceThreads - 1) / kReduceThreads;
  const int most = blocks < kMostBlocks ? blocks : kMostBlocks;
  reduce_kernel<<<most, kReduceThreads, 0, stream>>>(reduced, partial, arrived, from, count, value);
  must(cudaStreamSynchronize(stream), "a sum");
  return *reduced;
}

template <class Value>
double sum_all(Value value) {
  double sum = sum_here(0, kPairs, value);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

template <class Action>
void each(Action action) {
  each_kernel<<<(kPairs + kReduceThreads - 1) / kReduceThreads, kReduceThreads, 0, stream>>>(action);
}

struct Dot {
  const double2 *left, *right;
  __device__ double operator()(int i) const {
    const double2 a = __ldg(left + i), b = __ldg(right + i);
    return a.x * b.x + a.y * b.y;
  }
};

struct Residual {
  double2 *r, *p;
  const double2 *b, *v;
  __device__ double operator()(int i) const {
    const double2 b_i = __ldg(b + i), v_i = __ldg(v + i);
    const double2 value = make_double2(b_i.x - v_i.x, b_i.y - v_i.y);
    r[i] = p[i] = value;
    return value.x * value.x + value.y * value.y;
  }
};

struct Advance {
  double2 *x, *r;
  const double2 *p, *v;
  double alpha;
  __device__ double operator()(int i) const {
    const double2 p_i = __ldg(p + i), v_i = __ldg(v + i), x_i = x[i], r_i = r[i];
    const double2 value = make_double2(r_i.x - alpha * v_i.x, r_i.y - alpha * v_i.y);
    x[i] = make_double2(x_i.x + alpha * p_i.x, x_i.y + alpha * p_i.y);
    r[i] = value;
    return value.x * value.x + value.y * value.y;
  }
};

struct Turn {
  double2* p;
  const double2* r;
  double beta;
  __device__ void operator()(int i) const {
    const double2 p_i = p[i], r_i = __ldg(r + i);
    p[i] = make_double2(r_i.x + beta * p_i.x, r_i.y + beta * p_i.y);
  }
};

double2* pairs(double* field) { return reinterpret_cast<double2*>(field); }

double dot() { return sum_all(Dot{pairs(p), pairs(v)}); }
double residual() { return sum_all(Residual{pairs(r), pairs(p), pairs(b), pairs(v)}); }
double advance(double alpha) { return sum_all(Advance{pairs(x), pairs(r), pairs(p), pairs(v), alpha}); }
void turn(double beta) { each(Turn{pairs(p), pairs(r), beta}); }

/* values[t] += |x|^2 of this process's sites of t */
void correlate(double* values) {
  for (int t = 0; t < LT; t++)
    values[rank_t * LT + t] += sum_here(t * kPlanePairs, kPlanePairs, Dot{pairs(x), pairs(x)});
}

/* ---- fields ---- */

double* field_of(size_t doubles) {
  double* field = nullptr;
  must(cudaMalloc(&field, doubles * sizeof(double)), "memory for a field");
  must(cudaMemset(field, 0, doubles * sizeof(double)), "clearing a field");
  return field;
}

/* Fills each site, and the halo, with the elements that a function gives for global t, z, y, x. */
template <class Elements>
void load(double* field, int elements, Elements elements_of) {
  const size_t size = kRows * NX * elements;
  double* host = static_cast<double*>(malloc(size * sizeof(double)));
  double values[SPINOR];
  for (int t = -HT; t < LT + HT; t++)
    for (int z = -HZ; z < LZ + HZ; z++)
      for (int y = 0; y < NY; y++)
        for (int i = 0; i < NX; i++) {
          elements_of(values, rank_t * LT + t, rank_z * LZ + z, y, i);
          for (int k = 0; k < elements; k++) host[at(row_of(t, z, y), i, elements) + k * kStride] = values[k];
        }
  must(cudaMemcpy(field, host, size * sizeof(double), cudaMemcpyDefault), "loading a field");
  free(host);
}

/* b: 1 at site 0 in element k; x = b. */
void source(int element) {
  const double one = 1;
  for (double* field : {b, x}) {
    must(cudaMemsetAsync(field, 0, kFieldSize * sizeof(double), stream), "clearing a field");
    if (rank == 0) {
      double* to = field + at(row_of(0, 0, 0), 0, SPINOR) + element * kStride;
      must(cudaMemcpyAsync(to, &one, sizeof one, cudaMemcpyDefault, stream), "the source");
    }
  }
  must(cudaStreamSynchronize(stream), "the source");
}

const char* set_up() {
  int size = 0, local = 0, devices = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != PT * PZ)
    refuse("a grid of PT x PZ processes", "was not started", "start PT x PZ, or compile with others");
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local);
  MPI_Comm_free(&host);
  must(cudaGetDeviceCount(&devices), "finding GPUs");
  must(cudaSetDevice(local % devices), "taking a GPU");
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  rank_t = rank / PZ, rank_z = rank % PZ;
  overlapped = getenv("LQCD_OVERLAP") && atoi(getenv("LQCD_OVERLAP"));
  u = field_of(4 * kLinks);
  for (double** field : {&x, &b, &r, &p, &v, &w}) *field = field_of(kFieldSize);
  sent_z = field_of(2 * kFaceZ), received_z = field_of(2 * kFaceZ);
  partial = field_of(kMostBlocks);
  must(cudaMalloc(&arrived, sizeof *arrived), "a counter");
  must(cudaMemset(arrived, 0, sizeof *arrived), "a counter");
  must(cudaMallocHost(&reduced, sizeof *reduced), "memory for a sum");
  halo_x.prepare(x), halo_p.prepare(p), halo_w.prepare(w), halo_r.prepare(r);
  static cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, local % devices), "asking for the GPU's name");
  return properties.name;
}

/* ---- the solver ---- */

/* x with H H x = b; gives the index of the last iteration, or -1. */
int solve() {
  hop(w, halo_x);
  hop(v, halo_w);
  double size = residual();
  const double wanted = ENORM;  // |b| = 1
  for (int n = 0; n < MOST_ITERATIONS; n++) {
    hop(w, halo_p);
    hop(v, halo_w);
    const double before = size;
    size = advance(size / dot());
    if (size < wanted) return n;
    turn(size / before);
  }
  return -1;
}

void solve_all(struct results* results, const struct options* options) {
  double correlator[NT] = {0};
  for (int n = 0; n < options->sources; n++) {
    const int colour = n / 4, spin = n % 4;
    source((spin * 3 + colour) * 2);
    finish();
    const double start = seconds_now();
    const int last = solve();
    finish();
    const double seconds = seconds_now() - start;
    hop(w, halo_x);
    hop(v, halo_w);
    tell_solve(results, colour, spin, last, residual(), seconds);
    correlate(correlator);
  }
  MPI_Allreduce(MPI_IN_PLACE, correlator, NT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  tell_correlator(results, options, correlator);
}

/* <p, H r> = <r, H p> for the real part of the product: as H is linear over complex numbers, it is Hermitian.
 */
void check_hermitian(struct results* results) {
  hop(v, halo_r);
  const double one = dot();
  hop(v, halo_p);
  turn(0);  // p = r
  tell_check(results, "g5-hermiticity", fabs(one - dot()) / (SITES * SPINOR), 1e-12);
}

/* The timed parts. */
double *copy_from, *copy_to;
void time_hop() { launch_hop<kAll>(v, p); }
void time_hop_with_halo() { hop(v, halo_p); }
void time_algebra() { dot(), advance(0), turn(0); }
void time_copy() {
  must(cudaMemcpyAsync(copy_to, copy_from, COPY_BYTES, cudaMemcpyDeviceToDevice, stream), "a copy");
}

double seconds_of(void (*part)(), int repeat) {
  part();
  finish();
  const double start = seconds_now();
  for (int i = 0; i < repeat; i++) part();
  finish();
  return (seconds_now() - start) / repeat;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct options options = options_of(argc, argv);
  const char* device = set_up();
  struct results results = begin("cuda-mpi", rank == 0, &options, device);
  for (int mu = 0; mu < 4; mu++) {
    load(u + mu * kLinks, LINK,
         [&](double* link, int t, int z, int y, int i) { link_of(link, &options.gauge, mu, t, z, y, i); });
  }
  for (int seed : {1, 2}) {
    load(seed == 1 ? p : r, SPINOR, [=](double* values, int t, int z, int y, int i) {
      for (int k = 0; k < SPINOR; k++) values[k] = random_spinor(seed, t, z, y, i, k);
    });
  }
  if (options.check) check_hermitian(&results);
  if (options.sources) solve_all(&results, &options);
  if (options.repeat) {
    const int n = options.repeat;
    const struct speeds speeds = {seconds_of(time_hop, n), seconds_of(time_hop_with_halo, n),
                                  seconds_of(time_algebra, n)};
    tell_speeds(&results, &options, speeds);
    copy_from = field_of(COPY_BYTES / sizeof(double)), copy_to = field_of(COPY_BYTES / sizeof(double));
    tell_copy(&results, COPY_BYTES, seconds_of(time_copy, n));
  }
  const int status = end(&results);
  MPI_Finalize();
  return status;
}
