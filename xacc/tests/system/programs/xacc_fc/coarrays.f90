! Coarrays: sections on both sides, images in one dimension and in two, synchronisation, post and wait, locks,
! collective and atomic subroutines, coarrays as arguments and in procedures.
module shared
  implicit none
  integer, parameter :: dp = kind(1d0)
  real(dp), save :: row(0:9)[*]
  integer :: wrong = 0
end module shared

program coarrays
  use shared
  use, intrinsic :: iso_fortran_env, only: lock_type, stat_locked
  implicit none
!$xmp nodes p(*)
  type(lock_type) :: locks(0:1, 2)[*], busy[*]
  integer :: flag[*], status, sums(3)
  logical :: acquired, ready[*]
  real(dp) :: smallest
  integer :: me, all_of, next, before, i, j
  integer, codimension[*] :: one
  integer :: grid(3, 4)[*], local(3, 4), shifted(2)[-1:0, 3:*]
  real, allocatable :: cube(:)[:, :, :], ours(:)[:]
  real(dp), allocatable :: later(:)[:]
  type point
    real :: x, y
  end type point
  type, extends(point) :: cell
    integer :: of(0:2, 2)
    type(point) :: corner(2)
  end type cell
  type(cell) :: cells(2)[*]
  type(point) :: points(2)[*], mine(2)
  character(5) :: word[*]
  interface
    subroutine declared(x, y, me, images)
      integer, codimension[*] :: x
      real(8) :: y(2:9)[*]
      integer, intent(in) :: me, images
    end subroutine declared
  end interface

  me = this_image()
  all_of = num_images()
  next = mod(me, all_of) + 1
  before = mod(me + all_of - 2, all_of) + 1
  one = 10 * me
  row = me
  grid = reshape([(100 * me + i, i = 1, 12)], [3, 4])
  points = point(me, -me)
  word = 'none'
  allocate (later(5)[*])
  later = me + 0.5_dp
  sync all

  call check(one[next] == 10 * next .and. one == 10 * me, 'a scalar of another image')
  local = 0
!$acc data copyin(grid) copyout(local)
!$acc parallel loop collapse(2)
  do j = 1, 4
    do i = 1, 3
      local(i, j) = grid(i, j) + one
    end do
  end do
!$acc end data
  call check(sum(local) == 12*(110*me) + 78, 'a coarray in a kernel')
  call check(sum(row(2:8:3)[before]) == 3 * before, 'a section with a step')
  call check(row(int(row(0)[mod(int(row(1)[next]), all_of) + 1]) - 1)[one[next]/10] == next, 'images within images')
  row(5:int(row(5)[1]) + 3)[before] = -5
  call check(size(row(6:5)[next]) == 0, 'an empty section')
  local(:, 2:3) = grid(:, 3:4)[next] - grid(1, 1)[me]
  mine = points(:)[next]
  call check(all(mine%y == -next), 'a derived type')
  call check(all(local(:, 2) == 100 * (next - me) + [6, 7, 8]), 'a section of two dimensions')
  sync all

  if (me /= all_of) one[next] = me
  row(0:3)[next] = [1, 2, 3, 4] * me
  row(9)[next] = -1
  grid(2, :)[next] = 7
  word[next] = 'hello'
  later(2:4)[next] = 2 * [me, me, me] + 1
  sync all
  if (me > 1) call check(one == before, 'a put in a condition')

  cells%x = 0
  cells(2)%of = 0
  sync all
  cells(2)[next]%of(1:2, 2) = [me, 2 * me]
  cells(me/me + 1)[next]%corner(2)%y = me
  if (all_of > 0) cells(1)[next]%x = me + 0.5
  sync all
  call check(all(cells(2)%of == reshape([0, 0, 0, 0, before, 2 * before], [3, 2])), 'a put of a component')
  call check(cells(2)%corner(2)%y == before .and. cells(1)%x == before + 0.5, 'a put of components')
  call check(cells(2)[next]%of(1, 2) == me .and. cells(2)[next]%corner(2)%y == me, 'a component of another image')
  call check(all(cells(:)[next]%x == [me + 0.5, 0.]), 'a component of a section')
  call check(all(row(0:3) == [1, 2, 3, 4] * before) .and. row(9) == -1 .and. row(5) == me, 'a put of a section')
  call check(all(grid(2, :) == 7) .and. grid(1, 1) == 100 * me + 1, 'a put of a scalar to a section')
  call check(word == 'hello', 'characters')
  call check(later(3) == 2 * before + 1 .and. later(1) == me + 0.5_dp, 'an allocated coarray')
  sync memory

  ! images that do not count from 1, and those of several dimensions
  allocate (cube(2)[2, 0:1, *])
  shifted = [me, -me]
  cube = me
  sync all
  call check(shifted(1)[mod(next - 1, 2) - 1, 3 + (next - 1)/2] == next, 'lower bounds of images')
  call check(cube(2)[mod(next - 1, 2) + 1, mod((next - 1)/2, 2), 1 + (next - 1)/4] == next, 'bounds of allocate')
  call check(all(this_image(shifted) == [mod(me - 1, 2) - 1, 3 + (me - 1)/2]), 'this_image of a coarray')
  call check(this_image(coarray=cube, dim=3) == 1 + (me - 1)/4, 'this_image with a dimension')
  call check(all(lcobound(cube) == [1, 0, 1]) .and. lcobound(shifted, i - i + 2) == 3, 'lcobound')
  call check(ucobound(cube, 2) == 1 .and. ucobound(shifted, 2) == 3 + (all_of - 1)/2, 'ucobound')
  call check(image_index(shifted, this_image(shifted)) == me .and. image_index(cube, [3, 0, 1]) == 0, 'image_index')
  sync all

  one = 0
  sync all
  if (me == 1) then
    do i = 2, all_of
      one[i] = i
      sync images (i)
    end do
  else
    sync images (1)
    call check(one == me, 'sync images')
  end if
  sync images (*)

  one = 0
  flag = 0
  ready = .false.
  sync all
  do i = 1, 5
    critical
      one[1] = one[1] + 1
    end critical
    lock (locks(1, 2)[all_of])
    flag[1] = flag[1] + 2
    unlock (locks(1, 2)[all_of])
  end do
  sync all (stat=status)
  if (me == 1) call check(one == 5 * all_of .and. flag == 10 * all_of .and. status == 0, 'critical and lock')
  lock (busy, acquired_lock=acquired)
  call check(acquired, 'a lock of this image')
  if (acquired) lock (busy, stat=status)
  call check(status == stat_locked, 'the state of a lock')
  unlock (busy, stat=status)
  call check(status == 0, 'unlock')
  sync all

  i = me
  call co_sum(i)
  sums = [me, -me, 3]
  call co_max(sums)
  smallest = me + 0.5_dp
  call co_min(smallest, result_image=1, stat=status)
  call check(i == all_of * (all_of + 1) / 2 .and. all(sums == [all_of, -1, 3]), 'co_sum and co_max')
  if (me == 1) call check(smallest == 1.5_dp .and. status == 0, 'co_min')
  call co_max(me + 0.5_dp, smallest)
  call check(smallest == all_of + 0.5_dp, 'co_max with a variable for the result')
  call co_sum(source=[me, 0, -me], result=sums)
  call check(all(sums == [1, 0, -1] * (all_of * (all_of + 1) / 2)), 'co_sum with a name for the result')

  ! In a task its nodes are the images.
  i = 0
!$xmp task on p(2:all_of)
  i = this_image()
  one = 0
  sync all
  one[mod(i, num_images()) + 1] = i
  sync all
  call check(one == mod(i + num_images() - 2, num_images()) + 1, 'images of a task')
  status = 1
  call co_sum(status)
  call check(status == all_of - 1, 'co_sum of a task')
  allocate (ours(2)[*])
  ours = i
  sync all
  call check(ours(2)[mod(i, num_images()) + 1] == mod(i, num_images()) + 1, 'a coarray of a task')
  deallocate (ours)
!$xmp end task
  call check(i == me - 1, 'this_image of a task')
  i = 7 * me
  if (all_of > 0) call co_broadcast(i, source_image=all_of)
  call check(i == 7 * all_of, 'co_broadcast')

  flag = 0
  sync all
  if (me == all_of) then
    call atomic_define(flag[1], 7_8)
    if (i > 0) call atomic_define(ready[1], .true., status)
  end if
  if (me == 1) then
    i = 0
    do while (i /= 7)
      call atomic_ref(i, flag)
    end do
    acquired = .false.
    do while (.not. acquired)
      call atomic_ref(acquired, ready[1])
    end do
  end if
  sync all

  deallocate (later)
  allocate (later(0)[*])
  call check(size(later(:)[next]) == 0, 'a coarray without elements')
  deallocate (later)
  allocate (later(0:7)[*])
  later = me
  sync all
  later(0)[next] = -me
  sync all
  call check(later(0) == -before .and. later(7) == me, 'a coarray that is allocated again')
  call resize(later, 7)
  later(7)[next] = me
  sync all
  call check(later(7) == before .and. later(2) == 0, 'an allocatable argument')
  call counted(cube)
  do i = 1, 3
    call allocates(10 * i)
  end do
  grid = 0
  sync all
  call shaped(grid)
  call part_of(grid(:, 2))
  row = 0
  sync all
  call outside(row(1:8), one, me, all_of, i)
  call check(i == 0 .and. row(4) == before .and. row(3) == 0, 'arguments of a procedure without an interface')
  sync all
  call declared(one, row(1:8), me, all_of)
  call check(one == 500 + before .and. row(2) == before, 'arguments of a procedure with an interface')

!$xmp post (p(next), 5)
!$xmp wait (p(before), 5)
!$xmp reduction (+: wrong)
  if (me == 1) print '(i0, a, i0, a)', all_of, ' images, ', wrong, ' wrong'
  if (wrong /= 0) error stop 1

contains

  ! a coarray of a procedure, which ends at its return
  subroutine allocates(n)
    integer, intent(in) :: n
    integer, allocatable :: own(:)[:]
    integer, save :: calls[*] = 0
    allocate (own(n)[*])
    own = me
    sync all
    own(n)[next] = n
    calls[next] = n
    sync all
    call check(own(n) == n .and. own(1) == me .and. calls == n, 'a coarray of a procedure')
  end subroutine allocates

  ! coarrays as arguments
  subroutine shaped(all_of_it)
    integer, intent(inout) :: all_of_it(0:, :)[*]
    all_of_it(0, :)[next] = me
    sync all
    call check(all(grid(1, :) == before) .and. all(grid(2:, :) == 0), 'an assumed-shape argument')
    sync all
  end subroutine shaped

  subroutine resize(x, n)
    real(dp), allocatable, intent(inout) :: x(:)[:]
    integer, intent(in) :: n
    x(1)[next] = 100 + me
    sync all
    call check(x(1) == 100 + before .and. x(0) == -before, 'an allocatable dummy argument')
    deallocate (x)
    allocate (x(n)[*])
    x = 0
    sync all
  end subroutine resize

  subroutine counted(x)
    real, allocatable :: x(:)[:, :, :]
    call check(x(1)[mod(next - 1, 2) + 1, mod((next - 1)/2, 2), 1 + (next - 1)/4] == next, 'bounds of an argument')
    call check(ubound(x, 1) == 2 .and. ucobound(x, 2) == 1, 'ucobound of an argument')
  end subroutine counted

  subroutine part_of(part)
    integer, intent(inout) :: part(3)[*]
    part(2)[next] = 1000 + me
    part(3) = part(2)[me]
    sync all
    call check(grid(2, 2) == 1000 + before .and. part(2) == 1000 + before, 'a part of a coarray')
  end subroutine part_of

  subroutine check(right, about)
    logical, intent(in) :: right
    character(*), intent(in) :: about
    if (right) return
    wrong = wrong + 1
    print *, me, 'wrong: ', about
  end subroutine check
end program coarrays

! without an interface: the compiler must look again at what other images change
subroutine outside(x, scalar, me, images, wrong)
  implicit none
  integer, intent(in) :: me, images
  real(8) :: x(2:9)[*]
  integer :: scalar[*], wrong
  x(5)[mod(me, images) + 1] = me
  scalar = -1
  sync all
  scalar[mod(me, images) + 1] = me
  wrong = merge(0, 1, scalar == -1 .or. images > 0)
  sync all
  if (scalar /= mod(me + images - 2, images) + 1 .or. nint(x(5)) /= scalar) wrong = 1
end subroutine outside

subroutine declared(x, y, me, images)
  implicit none
  integer :: x[*]
  real(8) :: y(2:9)[*]
  integer, intent(in) :: me, images
  x[mod(me, images) + 1] = 500 + me
  y(3)[mod(me, images) + 1] = me
  sync all
end subroutine declared
