! Distributed components of derived types, local aliases, pointers to distributed arrays, sums of shadows.
module grids
  implicit none
  integer, parameter :: n = 24, m = 8
!$xmp nodes q(*)
!$xmp template s(n)
!$xmp distribute s(block) onto q
  type grid
    integer :: steps = 3
    real(8) :: u(m, n), v(m, 0:n - 1)
    character(4) :: label
  end type grid
  type(grid) :: one, other
!$xmp align grid%u(*, j) with s(j)
!$xmp align one%v(*, j) with s(j + 1)
!$xmp align other%v(*, j) with s(j + 1)
!$xmp shadow grid%u(0, 1)
  integer :: wrong = 0
contains
  subroutine check(right, about)
    logical, intent(in) :: right
    character(*), intent(in) :: about
    if (right) return
    wrong = wrong + 1
    print *, 'wrong: ', about
  end subroutine check
end module grids

program parts
  use grids
  implicit none
  type cell
    integer, allocatable :: count(:)
    integer :: few(n)
  end type cell
!$xmp nodes p(*)
!$xmp template t(n)
!$xmp template c(n)
!$xmp distribute t(block) onto p
!$xmp distribute c(cyclic) onto p
  type(cell) :: mine
!$xmp align mine%count(i) with t(i)
!$xmp align cell%few(i) with c(i)
  integer :: i, j, total
  real(8) :: biggest
!$xmp loop (j) on s(j)
  do j = 1, n
    do i = 1, m
      one%u(i, j) = 100 * i + j
      other%u(i, j) = 0
      other%v(i, j - 1) = j
    end do
  end do
  one%steps = 7
!$xmp reflect (one%u) width(0, /periodic/1)
  biggest = 0
!$xmp loop (j) on s(j) reduction(max: biggest)
  do j = 1, n
    other%u(:, j) = one%u(:, j - 1) + one%u(:, j + 1)
    biggest = max(biggest, maxval(other%u(:, j)))
  end do
  call check(biggest == 1600 + 2 * (n - 1) .and. one%steps == 7 .and. other%steps == 3, 'components of a module')
!$xmp gmove
  one%u(1:m, 1:3) = other%v(:, 20:22)
  biggest = 0
!$xmp loop (j) on s(j) reduction(max: biggest)
  do j = 1, 3
    biggest = max(biggest, maxval(abs(one%u(:, j) - (20 + j))))
  end do
  call check(biggest == 0, 'gmove of components')
!$xmp array on s(:)
  one%u(:, :) = other%u(:, :) + 1
  biggest = 0
!$xmp loop (j) on s(j) reduction(max: biggest)
  do j = 1, n
    biggest = max(biggest, maxval(abs(one%u(:, j) - other%u(:, j) - 1)))
  end do
  call check(biggest == 0, 'array on components')

  allocate (mine%count(n))
  call check(allocated(mine%count), 'an allocated component')
!$xmp loop on t(i)
  do i = 1, n
    mine%count(i) = i
  end do
!$xmp loop on c(i)
  do i = 1, n
    mine%few(i) = -i
  end do
  total = 0
!$xmp loop on t(i) reduction(+: total)
  do i = 1, n
    total = total + mine%count(i)
  end do
!$xmp loop on c(i) reduction(+: total)
  do i = 1, n, 3
    total = total + mine%few(i)
  end do
  call check(total == n * (n + 1) / 2 - sum([(i, i = 1, n, 3)]), 'components of a procedure')
  deallocate (mine%count)
  call check(.not. allocated(mine%count), 'deallocate of a component')

  if (xmp_num_nodes() == 4) call neighbours
  call pointing
  call shadows
  call of_a_call(5)
  call of_a_call(6)
  do i = 1, 3
    call kept(i)
  end do
!$xmp reduction (+: wrong)
!$xmp task on p(1)
  print '(i0, a, i0, a)', xmp_all_num_nodes(), ' nodes, ', wrong, ' wrong'
!$xmp end task
  if (wrong > 0) error stop 1

contains

  ! a reflect by hand: each image puts its edges into the shadows of its neighbours
  subroutine neighbours
    integer, save :: a(n), far(0:n - 1)
!$xmp nodes r(4)
!$xmp template w(n)
!$xmp distribute w(block) onto r
!$xmp align a(i) with w(i)
!$xmp shadow a(1)
!$xmp align far(i) with w(i + 1)
    integer :: edge(0:)[*], plain(:)
!$xmp local_alias edge => a
!$xmp local_alias plain => far
    integer :: i, me, right, left, bad
    me = this_image()
    right = modulo(me, 4) + 1
    left = modulo(me - 2, 4) + 1
!$xmp loop on w(i)
    do i = 1, n
      a(i) = i
    end do
    call check(size(edge) == n / 4 + 2 .and. lbound(edge, 1) == 0, 'the bounds of a local alias')
    call check(edge(1) == (me - 1) * n / 4 + 1, 'the first element of a part')
    sync all
    edge(n / 4 + 1)[left] = edge(1)
    edge(0)[right] = edge(n / 4)
    sync all
    call check(edge(1)[right] == modulo(me, 4) * n / 4 + 1, 'a local alias of another image')
    bad = 0
!$xmp loop on w(i) reduction(+: bad)
    do i = 1, n
      if (a(i - 1) /= modulo(i - 2, n) + 1 .or. a(i + 1) /= modulo(i, n) + 1) bad = bad + 1
    end do
    call check(bad == 0, 'shadows by coarrays')
    plain = me
    total = 0
!$xmp loop on w(i) reduction(+: total)
    do i = 1, n
      total = total + far(i - 1)
    end do
    call check(total == 10 * n / 4 .and. ubound(plain, 1) == n / 4, 'a plain local alias')
    sync all
  end subroutine neighbours

  subroutine pointing
    integer, pointer :: a(:)
    integer, target :: b(0:n - 1), d(0:n - 1)
!$xmp align a(i) with t(i + 1)
!$xmp align (i) with t(i + 1) :: b, d
!$xmp shadow (1) :: a, b, d
    integer :: i, total
    total = n * n
    nullify (a)
    call check(.not. associated(a), 'a pointer to nothing')
!$xmp loop on t(i + 1)
    do i = 0, n - 1
      b(i) = i
      d(i) = -i
    end do
    a => b
!$xmp reflect (a) width(/periodic/1)
    if (total == n * n) a => d
    total = 0
!$xmp loop on t(i + 1) reduction(+: total)
    do i = 0, n - 1
      total = total + b(i - 1) + 1000 * a(i)
    end do
    call check(total == -999 * (n * (n - 1) / 2), 'a pointer to one array and another')
    a => null()
    call check(.not. associated(a), 'a pointer to nothing again')
  end subroutine pointing

  subroutine shadows
    integer :: a(n, n)
!$xmp template w(n, n)
!$xmp nodes r(1, *)
!$xmp distribute w(block, block) onto r
!$xmp align a(i, j) with w(i, j)
!$xmp shadow a(1, 1)
    integer :: total
    a = 1
!$xmp reduce_shadow (a) width(/periodic/1, /periodic/1) async(3)
!$xmp wait_async (3)
    total = 0
!$xmp loop (i, j) on w(i, j) reduction(+: total)
    do j = 1, n
      do i = 1, n
        total = total + a(i, j)
      end do
    end do
    call check(total == (n + 2) * (n + 2 * columns(n)), 'reduce_shadow')
    a = 1
!$xmp reduce_shadow (a) width(/periodic/1, /periodic/1) orthogonal
    total = 0
!$xmp loop (i, j) on w(i, j) reduction(+: total)
    do j = 1, n
      do i = 1, n
        total = total + a(i, j)
      end do
    end do
    call check(total == n * n + 2 * n + 2 * n * columns(n), 'reduce_shadow without corners')
  end subroutine shadows

  ! how many nodes have a part of n columns
  integer function columns(n)
    integer, intent(in) :: n
    columns = xmp_num_nodes()
    do while (columns > 1 .and. (columns - 1) * ((n - 1) / xmp_num_nodes() + 1) >= n)
      columns = columns - 1
    end do
  end function columns

  ! an array that keeps its values between calls, and a coarray of its parts where these are alike
  subroutine kept(number)
    integer, intent(in) :: number
    integer, save :: counts(n)
!$xmp nodes r(*)
!$xmp template w(n)
!$xmp distribute w(block) onto r
!$xmp align counts(i) with w(i)
    integer :: part(:)[*]
!$xmp local_alias part => counts
    integer :: i, total
!$xmp loop on w(i)
    do i = 1, n
      if (number == 1) counts(i) = 0
      counts(i) = counts(i) + 1
    end do
    sync all
    call check(part(1)[num_images()] == number, 'an image of an array that is kept')
    sync all
    total = 0
!$xmp loop on w(i) reduction(+: total)
    do i = 1, n
      total = total + counts(i)
    end do
    call check(total == n * number, 'an array that is kept')
  end subroutine kept

  ! a component of a variable of this procedure, in each call anew
  subroutine of_a_call(number)
    integer, intent(in) :: number
    type row
      integer :: x(0:n - 1)
    end type row
    type(row) :: here
!$xmp align here%x(i) with t(i + 1)
    integer :: i, total
!$xmp loop on t(i + 1)
    do i = 0, n - 1
      here%x(i) = number
    end do
    total = 0
!$xmp loop on t(i + 1) reduction(+: total)
    do i = 0, n - 1
      total = total + here%x(i)
    end do
    call check(total == n * number, 'a component of a procedure')
  end subroutine of_a_call
end program parts
