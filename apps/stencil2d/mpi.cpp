// stencil2d_mpi: the halo exchange by (CUDA-aware) MPI, as a program written for MPI does it. Rows go
// straight from the array; columns are packed into one buffer by a kernel. Persistent requests, made once for
// each of the two arrays.
//
//   mpi          pack, messages, unpack, one kernel over all cells
//   mpi-overlap  the interior is computed while the messages are under way, and the next boundary as soon as
//   it can be
#define OMPI_SKIP_MPICXX 1  // their C++ bindings are long gone
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "backend.h"
#include "program.h"
#include "variant.h"

namespace stencil {

namespace {

void must(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error(std::string("stencil2d_mpi: ") + call + " failed: " + text);
}

class MpiGroup : public Group {
 public:
  MpiGroup() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    const int count = static_cast<int>(bytes);
    must(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
  }

 private:
  int rank_ = 0, size_ = 1;
};

/// The messages of one array: to and from up to four neighbours.
class Messages {
 public:
  Messages(const Lattice& lattice, double* field, double* sent_columns, double* received_columns) {
    const int ny = static_cast<int>(lattice.count[Y]), nx = static_cast<int>(lattice.count[X]);
    double* row = field + 1;
    const size_t pitch = lattice.pitch();
    // A tag is the direction in which a message travels: two ranks may be neighbours on both sides.
    const int north = lattice.neighbour(Y, Before), south = lattice.neighbour(Y, After);
    pair(north, row + pitch, row, nx, 0, 1);
    pair(south, row + static_cast<size_t>(ny) * pitch, row + static_cast<size_t>(ny + 1) * pitch, nx, 1, 0);
    const int west = lattice.neighbour(X, Before), east = lattice.neighbour(X, After);
    pair(west, sent_columns, received_columns, ny, 2, 3);
    pair(east, sent_columns + ny, received_columns + ny, ny, 3, 2);
  }
  ~Messages() {
    for (int i = 0; i < count_; ++i) MPI_Request_free(&requests_[i]);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  void start() { must(MPI_Startall(count_, requests_.data()), "MPI_Startall"); }
  void finish() { must(MPI_Waitall(count_, requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall"); }

 private:
  void pair(int rank, const double* sent, double* received, int count, int tag_out, int tag_in) {
    if (rank < 0) return;
    must(MPI_Recv_init(received, count, MPI_DOUBLE, rank, tag_in, MPI_COMM_WORLD, &requests_[count_++]),
         "MPI_Recv_init");
    must(MPI_Send_init(sent, count, MPI_DOUBLE, rank, tag_out, MPI_COMM_WORLD, &requests_[count_++]),
         "MPI_Send_init");
  }

  std::array<MPI_Request, 8> requests_{};
  int count_ = 0;
};

class MpiVariant : public Variant {
 public:
  MpiVariant(const Problem& problem, bool overlapped)
      : problem_(problem),
        device_(problem.device),
        overlapped_(overlapped),
        columns_(problem.lattice.neighbour(X, Before) >= 0 || problem.lattice.neighbour(X, After) >= 0),
        main_(device_.queue(false)),
        edge_(device_.queue(true)),
        sent_(device_.allocate(2 * problem.lattice.count[Y])),
        received_(device_.allocate(2 * problem.lattice.count[Y])),
        messages_{{problem.lattice, problem.field[0], sent_, received_},
                  {problem.lattice, problem.field[1], sent_, received_}} {}

  std::vector<double> run(uint64_t steps, uint64_t batch) override {
    if (overlapped_) pack(0, edge_), device_.wait(edge_);
    device_.mark(main_);
    for (uint64_t n = 0; n < steps; ++n) {
      const int now = static_cast<int>(n % 2);
      overlapped_ ? overlapped_step(now, n + 1 < steps) : plain_step(now);
      if ((n + 1) % batch == 0) device_.mark(main_);
    }
    device_.wait(main_);
    return differences(device_.marks());
  }

  std::optional<double> exchange_alone(uint64_t times) override {
    exchange(0);
    device_.mark(main_);
    for (uint64_t i = 0; i < times; ++i) exchange(0);
    device_.mark(main_);
    device_.wait(main_);
    return device_.marks()[1] / static_cast<double>(times);
  }

 private:
  void pack(int now, pw_stream queue) {
    if (columns_) device_.pack_columns(problem_.lattice, problem_.field[now], sent_, queue);
  }
  void unpack(int now, pw_stream queue) {
    if (columns_) device_.unpack_columns(problem_.lattice, received_, problem_.field[now], queue);
  }
  void sweep(Part part, int now, pw_stream queue) {
    device_.sweep(part, problem_.lattice, problem_.field[now], problem_.field[1 - now], queue);
  }

  void exchange(int now) {
    pack(now, main_);
    device_.wait(main_);  // MPI reads what the kernels wrote
    messages_[now].start();
    messages_[now].finish();
    unpack(now, main_);
  }

  void plain_step(int now) {
    exchange(now);
    sweep(Part::all, now, main_);
  }

  /// When it is called, the boundary of field[now] is computed and its columns are packed.
  void overlapped_step(int now, bool more) {
    messages_[now].start();
    // The boundary of this step overwrites what the interior of the last step read.
    device_.follow(edge_, main_);
    sweep(Part::interior, now, main_);
    messages_[now].finish();
    unpack(now, edge_);
    sweep(Part::boundary, now, edge_);
    if (more) pack(1 - now, edge_);
    device_.wait(edge_);  // MPI and the next interior read it; this interior may go on
  }

  const Problem& problem_;
  Device& device_;
  bool overlapped_, columns_;
  pw_stream main_, edge_;
  double *sent_, *received_;
  Messages messages_[2];
};

int local_rank() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return rank;
}

int main_of_rank(int argc, char** argv) {
  Options options;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MpiGroup group;
  if (const auto end = parse_or_say(argc, argv, {"mpi", "mpi-overlap"}, group.rank(), options)) return *end;
  const std::unique_ptr<Device> device = make_device(options.cuda, local_rank());
  return run(options, group, *device, [](const Problem& problem) {
    return std::make_unique<MpiVariant>(problem, problem.variant == "mpi-overlap");
  });
}

}  // namespace

}  // namespace stencil

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 1;
  try {
    status = stencil::main_of_rank(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
