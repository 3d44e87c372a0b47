// What the programs for several GPUs share: the ranks of MPI, one for each GPU, and the exchange of halos.
// MPI has to send from the memory of GPUs (CUDA-aware MPI).
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>

#include "by_hand.cuh"

#ifndef RANKS
#define RANKS 2
#endif
static_assert(RANKS > 1, "the programs for one GPU need no MPI");

/// MPI from its start to its end, with a GPU for each rank.
class Mpi {
 public:
  Mpi(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    int size, local, devices;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    if (size != RANKS) {
      std::fprintf(stderr, "%d ranks were started; start %d, or compile with -DRANKS=%d\n", size, RANKS,
                   size);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_free(&host);
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaSetDevice(local % devices));
  }
  ~Mpi() { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }

 private:
  int rank_;
};

inline void sum_of_ranks(double* values, int count) {
  MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

inline double max_of_ranks(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

/// The time in seconds when the GPUs of all ranks have done all work so far.
inline double seconds_when_all_done() {
  CHECK(cudaDeviceSynchronize());
  MPI_Barrier(MPI_COMM_WORLD);
  return seconds_now();
}

/// The first row of a rank's block in a grid with `rows` rows.
constexpr int block_begin(int rank, int rows) { return std::min(rank * ((rows + RANKS - 1) / RANKS), rows); }

/// The rows that a rank computes: its block without the first and the last row of the grid. They are rows 1
/// to count of the rank's arrays; rows 0 and count + 1 are halos or boundaries.
struct Rows {
  int first, count;
};

/// The rows of a rank in a grid with `rows` rows. Ends the program if they are fewer than `least`: both edges
/// and the inside need some.
inline Rows inner_rows(int rank, int rows, int least) {
  const int first = std::max(block_begin(rank, rows), 1);
  const int count = std::min(block_begin(rank + 1, rows), rows - 1) - first;
  if (count < least) {
    std::fprintf(stderr, "rank %d has %d rows of the grid and needs %d\n", rank, count, least);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return {first, count};
}

/// Fills the halos of `values` with the rows of `next` that the neighbours have computed, while the GPU
/// computes the rows that no neighbour needs.
class Halo {
 public:
  /// `row` is the number of elements in a row, `count` that of the rows that this rank computes.
  template <class T>
  Halo(int rank, T* values, const T* next, size_t row, int count) {
    const int before = rank > 0 ? rank - 1 : MPI_PROC_NULL,
              after = rank + 1 < RANKS ? rank + 1 : MPI_PROC_NULL;
    const int bytes = (int)(row * sizeof(T));
    MPI_Recv_init(values, bytes, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests_[0]);
    MPI_Recv_init(values + (count + 1) * row, bytes, MPI_BYTE, after, 1, MPI_COMM_WORLD, &requests_[1]);
    MPI_Send_init(next + row, bytes, MPI_BYTE, before, 1, MPI_COMM_WORLD, &requests_[2]);
    MPI_Send_init(next + count * row, bytes, MPI_BYTE, after, 0, MPI_COMM_WORLD, &requests_[3]);
    int lowest, highest;
    CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest));
    for (cudaEvent_t* event : {&work_before_, &edges_})
      CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }

  /// Launches the kernels that compute the edges, which it sends, and the inside. `rest` launches what needs
  /// both; it may read the rows that are sent, but not the halos. Returns when the halos are there.
  template <class Edges, class Inside, class Rest>
  void exchange(Edges edges, Inside inside, Rest rest) {
    CHECK(cudaEventRecord(work_before_));
    CHECK(cudaStreamWaitEvent(stream_, work_before_));
    edges(stream_);
    CHECK(cudaEventRecord(edges_, stream_));
    inside();
    CHECK(cudaStreamWaitEvent(nullptr, edges_));
    rest();
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(edges_));
    MPI_Startall(4, requests_);
    MPI_Waitall(4, requests_, MPI_STATUSES_IGNORE);
  }

 private:
  MPI_Request requests_[4];
  cudaStream_t stream_;  // for the edges; its priority puts them before the inside
  cudaEvent_t work_before_, edges_;
};
