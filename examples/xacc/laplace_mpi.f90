! laplace.f90 written by hand: MPI between blocks of columns. The directives are compared with it.
!
!   mpif90 -O3 laplace_mpi.f90 -o laplace_mpi && mpirun -n 2 ./laplace_mpi
program laplace
  use mpi
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  integer, parameter :: n = 64, steps = 20000
  real(8), parameter :: limit = 1d-13
  real(8), allocatable :: u(:, :), next(:, :)
  real(8) :: change, error, start
  integer :: rank, processes, block, low, high, below, above, i, j, done, requests(4), status

  call MPI_Init(status)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, status)
  call MPI_Comm_size(MPI_COMM_WORLD, processes, status)
  block = (n + processes - 1) / processes
  low = rank * block + 1
  high = min(n, low + block - 1)
  below = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  above = merge(rank + 1, MPI_PROC_NULL, high < n)
  allocate (u(n, low - 1:high + 1), next(n, low - 1:high + 1))
  do j = low, high
    do i = 1, n
      u(i, j) = merge(exact(i, j), 0d0, i == 1 .or. j == 1 .or. i == n .or. j == n)
    end do
  end do

  call MPI_Barrier(MPI_COMM_WORLD, status)
  start = MPI_Wtime()
  do done = 1, steps
    call MPI_Irecv(u(1, low - 1), n, MPI_DOUBLE_PRECISION, below, 0, MPI_COMM_WORLD, requests(1), status)
    call MPI_Irecv(u(1, high + 1), n, MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD, requests(2), status)
    call MPI_Isend(u(1, high), n, MPI_DOUBLE_PRECISION, above, 0, MPI_COMM_WORLD, requests(3), status)
    call MPI_Isend(u(1, low), n, MPI_DOUBLE_PRECISION, below, 1, MPI_COMM_WORLD, requests(4), status)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, status)
    change = 0
    do j = max(low, 2), min(high, n - 1)
      do i = 2, n - 1
        next(i, j) = 0.25d0 * (u(i, j - 1) + u(i, j + 1) + u(i - 1, j) + u(i + 1, j))
        change = max(change, abs(next(i, j) - u(i, j)))
      end do
    end do
    do j = max(low, 2), min(high, n - 1)
      do i = 2, n - 1
        u(i, j) = next(i, j)
      end do
    end do
    call MPI_Allreduce(MPI_IN_PLACE, change, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, status)
    if (change <= limit) exit
  end do
  start = MPI_Wtime() - start

  error = 0
  do j = low, high
    do i = 1, n
      error = max(error, abs(u(i, j) - exact(i, j)))
    end do
  end do
  call MPI_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, status)
  if (rank == 0) then
    print '(i0, a, es9.3, a, es9.3)', min(done, steps), ' steps, change ', change, ', error ', error
    write (error_unit, '(f0.1, a)') 1d-6 * min(done, steps) * (n - 2d0)**2 / start, ' million points a second'
  end if
  call MPI_Finalize(status)
  if (change <= limit .and. error >= 1d-9) error stop 1

contains

  pure real(8) function exact(i, j)
    integer, intent(in) :: i, j
    real(8) :: x, y
    x = (j - 1) / real(n - 1, 8)
    y = (i - 1) / real(n - 1, 8)
    exact = x * x - y * y
  end function exact
end program laplace
