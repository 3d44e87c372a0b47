/* Makes a team from an MPI communicator. Header only: it is compiled with the program's own MPI, and Peerway
 * itself does not depend on MPI. */
#ifndef PEERWAY_PEERWAY_MPI_H
#define PEERWAY_PEERWAY_MPI_H

#include <mpi.h>

#include "peerway/peerway.h"

static int pw_mpi_broadcast_(void* user, void* data, size_t bytes) {
  return MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, *(MPI_Comm*)user);
}

/* Collective over `communicator`, which is used only during the call. Ranks of the team are those of the
 * communicator. PW_INVALID_ARGUMENT if MPI does not know the communicator's rank or size. */
static inline pw_status pw_team_from_mpi(MPI_Comm communicator, pw_team** team) {
  int rank = 0, size = 0;
  if (MPI_Comm_rank(communicator, &rank) != MPI_SUCCESS || MPI_Comm_size(communicator, &size) != MPI_SUCCESS)
    return PW_INVALID_ARGUMENT;
  return pw_team_create(rank, size, pw_mpi_broadcast_, &communicator, team);
}

#endif
