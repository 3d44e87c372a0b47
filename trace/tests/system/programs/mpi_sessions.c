/* A program of sessions alone, without MPI_Init: a message in each of two communicators of one group and
 * name, and a second session within the first. Two ranks. */
#include <mpi.h>

static MPI_Comm communicator(MPI_Session session, const char* name) {
  MPI_Group group;
  MPI_Comm comm;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Group_free(&group);
  return comm;
}

int main(void) {
  MPI_Session session, second;
  int rank, data = 7;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Comm comm[2] = {communicator(session, "solver"), communicator(session, "solver")};
  MPI_Comm_rank(comm[0], &rank);
  for (int i = 0; i < 2; ++i) {
    if (rank == 0) MPI_Send(&data, 1, MPI_INT, 1, 5, comm[i]);
    if (rank == 1) MPI_Recv(&data, 1, MPI_INT, 0, 5, comm[i], MPI_STATUS_IGNORE);
  }
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second);
  MPI_Session_finalize(&second);
  MPI_Barrier(comm[0]);
  MPI_Comm_free(&comm[0]);
  MPI_Comm_free(&comm[1]);
  MPI_Session_finalize(&session);
  return data == 7 ? 0 : 1;
}
