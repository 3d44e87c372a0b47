/* What MPI programs do beside plain sends: waits for any and some of several requests, messages that are
 * probed first, collectives that do not block, of neighbours and persistent ones, partitioned messages,
 * communicators of every birth, and a send that nobody receives. Two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGES = 6, PARTS = 4 };

static int rank, other;

/* Each message is taken out by a probe: one received by a blocking call, one by a request, one polled for. */
static void probed(void) {
  MPI_Message message;
  MPI_Request request;
  MPI_Status status;
  int out[3] = {1, 2, 3}, in[3], matched = 0;
  for (int i = 0; i < 3; ++i) MPI_Send(out, i + 1, MPI_INT, other, 50 + i, MPI_COMM_WORLD);
  MPI_Mprobe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(in, 3, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Mprobe(other, 51, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(in, 3, MPI_INT, &message, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  while (!matched) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &matched, &message, &status);
  MPI_Mrecv(in, 3, MPI_INT, &message, &status);
  MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, 3, MPI_INT, &message, MPI_STATUS_IGNORE);
}

/* One message in each communicator; those of one parent are made at one time, and all have the same members.
 */
static void communicators(void) {
  MPI_Comm copies[5], inter;
  MPI_Group both, alone;
  MPI_Request births[2];
  int in = 0, zero = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &both);
  MPI_Group_incl(both, 1, &zero, &alone);
  if (rank == 0) { /* the other knows nothing of it */
    MPI_Comm_create_group(MPI_COMM_WORLD, alone, 1, &copies[0]);
    MPI_Comm_free(&copies[0]);
  }
  MPI_Comm_idup(MPI_COMM_WORLD, &copies[0], &births[0]);
  MPI_Comm_idup(MPI_COMM_WORLD, &copies[1], &births[1]);
  MPI_Waitall(2, births, MPI_STATUSES_IGNORE);
  MPI_Comm_create_group(MPI_COMM_WORLD, both, 1, &copies[2]);
  MPI_Comm_create_group(MPI_COMM_WORLD, both, 1, &copies[3]);
  MPI_Comm_dup(MPI_COMM_WORLD, &copies[4]);
  for (int i = 4; i >= 0; --i) {
    if (rank == 0) MPI_Send(&i, 1, MPI_INT, 1, 60, copies[i]);
    if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 60, copies[i], MPI_STATUS_IGNORE);
  }
  MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, 2, &inter);
  if (rank == 0) MPI_Send(&in, 1, MPI_INT, 0, 60, inter);
  if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 60, inter, MPI_STATUS_IGNORE);
  MPI_Comm_free(&inter);
  for (int i = 0; i < 5; ++i) MPI_Comm_free(&copies[i]);
  MPI_Group_free(&both);
  MPI_Group_free(&alone);
}

static void of_neighbours(void) {
  MPI_Comm ring;
  MPI_Request request;
  const int two = 2, periodic = 1;
  double out[2] = {0}, in[2];
  MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &periodic, 0, &ring);
  MPI_Neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, ring);
  MPI_Ineighbor_allgather(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&ring);
}

#if MPI_VERSION >= 4
static void of_version_4(void) {
  double parts[PARTS] = {0};
  int out = rank, in = -1;
  MPI_Request request;
  /* partitioned, twice by one request */
  if (rank == 0)
    MPI_Psend_init(parts, PARTS, 1, MPI_DOUBLE, 1, 40, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else
    MPI_Precv_init(parts, PARTS, 1, MPI_DOUBLE, 0, 40, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int turn = 0; turn < 2; ++turn) {
    MPI_Start(&request);
    for (int i = 0; rank == 0 && i < PARTS; ++i) MPI_Pready(i, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  /* one request for both ways; and one to nobody */
  MPI_Isendrecv(&out, 1, MPI_INT, other, 41, &in, 1, MPI_INT, other, 41, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Isendrecv_replace(&out, 1, MPI_INT, rank == 0 ? other : MPI_PROC_NULL, 42,
                        rank == 0 ? MPI_PROC_NULL : other, 42, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* a persistent collective, twice */
  MPI_Bcast_init(&out, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int turn = 0; turn < 2; ++turn) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int version, subversion, data[MESSAGES] = {0}, out = 7, index, count, indices[MESSAGES], sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_version(&version, &subversion);
  MPI_Request requests[MESSAGES];
  other = 1 - rank;
  /* Waitany: all but the last; Testsome: until that one is there, too */
  for (int i = 0; i < MESSAGES; ++i)
    MPI_Irecv(&data[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < MESSAGES - 1; ++i) MPI_Send(&out, 1, MPI_INT, other, i, MPI_COMM_WORLD);
  for (int i = 0; i < MESSAGES - 1; ++i) MPI_Waitany(MESSAGES, requests, &index, MPI_STATUS_IGNORE);
  MPI_Send(&out, 1, MPI_INT, other, MESSAGES - 1, MPI_COMM_WORLD);
  do {
    MPI_Testsome(MESSAGES, requests, &count, indices, MPI_STATUSES_IGNORE);
  } while (count == 0);
  /* collectives that do not block */
  MPI_Request under_way[2];
  MPI_Ibcast(&out, 1, MPI_INT, 0, MPI_COMM_WORLD, &under_way[0]);
  MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &under_way[1]);
  MPI_Waitall(2, under_way, MPI_STATUSES_IGNORE);
  probed();
  communicators();
  of_neighbours();
#if MPI_VERSION >= 4
  of_version_4();
#endif
  /* nobody receives it */
  if (rank == 0) MPI_Send(&out, 1, MPI_INT, 1, 99, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d\n", version);
  MPI_Finalize();
  return sum == 1 ? 0 : 1;
}
