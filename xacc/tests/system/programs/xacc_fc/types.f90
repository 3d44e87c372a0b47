! Derived types in loops of acc. Without its directives it is a sequential program, which prints the same.
module parts
  use, intrinsic :: iso_fortran_env, only: wp => real64
  use, intrinsic :: iso_c_binding, only: c_int, c_double
  implicit none
  integer, parameter :: three = 3
  type :: matrix
    sequence
    complex(wp) :: m(three, three)
  end type matrix
  type, bind(c) :: counts
    integer(c_int) :: all
    real(c_double) :: weight
    integer(c_int) :: of(0:2)
  end type counts
  type :: point
    integer(2) :: short
    real(wp) :: x, y
    logical :: inside
    integer(1) :: int
  end type point
  type, extends(point) :: particle
    real :: mass
    type(matrix) :: link(-1:0)
  end type particle
  type :: grid
    integer :: n
    real(wp), allocatable :: heights(:)
    real(wp), pointer :: origin => null()
    real(wp) :: h, low(2)
  end type grid
  type :: sheet
    integer :: n
    real(wp), allocatable :: heights(:, :)
    real(wp), pointer :: line(:) => null()
    type(grid) :: at
    integer :: last
  end type sheet
end module parts

module fields
  use parts
  implicit none
  integer, parameter :: nx = 6, ny = 17
!$xmp nodes p(*)
!$xmp template t(ny)
!$xmp distribute t(block) onto p
  type(particle) :: u(nx, ny), next(nx, ny)
!$xmp align u(*, j) with t(j)
!$xmp align next(*, j) with t(j)
!$xmp shadow u(0, 1)
  type :: cloth
    integer :: before
    real(wp) :: a(nx, ny), b(nx, ny), plain(2)
  end type cloth
  type(cloth) :: c
!$xmp align cloth%a(*, j) with t(j)
!$xmp align cloth%b(*, j) with t(j)
!$xmp shadow cloth%a(0, 1)
end module fields

program types
  use fields
  implicit none
  integer :: i, j
  real(wp) :: total
  call particles
  call scalars(13)
  call procedures(19)
  call members(11)
  call distributed_members

contains

  ! A distributed array of a type that extends another one, with its halo.
  subroutine particles
    total = 0
!$acc data create(u) copyout(next)
!$xmp loop (j) on t(j)
!$acc parallel loop collapse(2)
    do j = 1, ny
      do i = 1, nx
        u(i, j)%x = i + 0.25_wp*j
        u(i, j)%point%y = i*j
        u(i, j)%inside = mod(i + j, 3) == 0
        u(i, j)%short = int(i - j, 2)
        u(i, j)%int = 3_1
        u(i, j)%mass = i
        u(i, j)%link(-1)%m(1, 2) = cmplx(i, j, wp)
        u(i, j)%link(0)%m(3, 3) = 2
        u(i, j)%link(0)%m(mod(i, 2) + 1, 1) = (0, 1)*j
      end do
    end do
!$xmp reflect (u) acc
!$xmp loop (j) on t(j)
!$acc parallel loop
    do j = 2, ny - 1
      do i = 1, nx
        next(i, j) = u(i, j - 1)
        next(i, j)%x = u(i, j - 1)%x + 2*u(i, j + 1)%x
        if (u(i, j + 1)%inside) next(i, j)%y = -next(i, j)%y
        next(i, j)%link(0) = u(i, j + 1)%link(-1)
        next(i, j)%mass = next(i, j)%mass + both(u(2, j))
      end do
    end do
!$acc end data
!$xmp loop (j) on t(j) reduction(+: total)
    do j = 2, ny - 1
      do i = 1, nx
        total = total + next(i, j)%x*(i + 10*j) + next(i, j)%y + next(i, j)%short + next(i, j)%mass &
          + real(next(i, j)%link(0)%m(1, 2)*next(i, j)%link(-1)%m(1, 2)) + next(i, j)%int
      end do
    end do
!$xmp task on p(1)
    print '(a, es24.15)', 'particles', total
!$xmp end task
  end subroutine particles

  pure real function both(of)
    type(particle), intent(in) :: of(2)
    both = of(1)%mass - of(2)%mass
  end function both

  ! Variables of a type: their values go to each kernel, and come back where clauses say so.
  subroutine scalars(n)
    integer, intent(in) :: n
    type(grid) :: g
    type(counts) :: c, own
    type(point) :: corner, last, moved
    type(point), parameter :: fixed = point(1_2, 2.5_wp, -1, .true., 7_1)
    real(wp) :: a(n)
    integer :: x
    g%n = n
    g%h = 0.5_wp
    g%low = [1, 2]
    allocate (g%heights(n))
    corner = point(3_2, 4, 5, .false., 1_1)
    c = counts(0, 0, [0, 0, 0])
    x = 0
!$acc parallel loop firstprivate(corner)
    do i = 1, g%n
      moved = corner
      moved%x = moved%x + i
      a(i) = moved%x*g%h + g%low(2) + fixed%x
    end do
!$acc parallel loop private(own)
    do i = 1, n
      own%of(1) = i
      own%all = own%of(1)*2
      do x = 1, own%of(1)
        a(i) = a(i) + x*own%all
      end do
    end do
!$acc parallel loop copy(c)
    do i = 1, n
!$acc atomic update
      c%all = c%all + 1
!$acc atomic
      c%of(mod(i, 3)) = c%of(mod(i, 3)) + i
    end do
!$acc kernels
    last = corner
    last%y = a(3)
!$acc end kernels
!$acc kernels
    last%int = 5_1
!$acc end kernels
!$acc serial copy(last)
    last%x = corner%x
!$acc end serial
!$xmp task on p(1)
    print '(a, 3es24.15, 9i6)', 'scalars', sum(a), corner%x, last%y + last%x + last%int, c%all, c%of
!$xmp end task
  end subroutine scalars

  ! Components that are allocatable or pointers are arrays to kernels.
  subroutine members(n)
    integer, intent(in) :: n
    type(sheet) :: s
    s%n = n
    s%last = 3
    allocate (s%heights(0:n, 2), s%line(n), s%at%heights(-1:n))
    s%line = [(i*0.5_wp, i=1, n)]
    s%at%h = 2
!$acc data copyin(s%line) copyout(s%heights) create(s%at%heights)
!$acc parallel loop present(s%at%heights)
    do i = -1, s%n
      s%at%heights(i) = i
      if (i > 0) s%at%heights(i) = s%line(i)*s%at%h + s%last
    end do
!$acc parallel loop collapse(2)
    do j = 1, size(s%heights, 2)
      do i = 0, ubound(s%heights, 1)
        s%heights(i, j) = s%at%heights(i - 1)*j + weight(s%line, s%n)
      end do
    end do
!$acc update self(s%at%heights)
!$acc end data
!$xmp task on p(1)
    print '(a, 2es24.15)', 'members', sum(s%heights), sum(s%at%heights)
!$xmp end task
    deallocate (s%line)
  end subroutine members

  pure real(wp) function weight(x, n)
    integer, intent(in) :: n
    real(wp), intent(in) :: x(n)
    weight = x(n) - x(1)
  end function weight

  subroutine distributed_members
    c%before = 4
    c%plain = [7, 8]
!$acc data create(c%a) copyout(c%b)
!$xmp loop (j) on t(j)
!$acc parallel loop collapse(2)
    do j = 1, ny
      do i = 1, nx
        c%a(i, j) = i*j + c%before
        c%b(i, j) = 0
      end do
    end do
!$xmp reflect (c%a) acc
!$xmp loop (j) on t(j)
!$acc parallel loop
    do j = 2, ny - 1
      do i = 1, nx
        c%b(i, j) = c%a(i, j - 1) - 2*c%a(i, j + 1)*c%plain(2)
      end do
    end do
!$acc end data
    total = 0
!$xmp loop (j) on t(j) reduction(+: total)
    do j = 1, ny
      do i = 1, nx
        total = total + c%b(i, j)*(i + 3*j)
      end do
    end do
!$xmp task on p(1)
    print '(a, es24.15)', 'distributed', total
!$xmp end task
  end subroutine distributed_members

  ! Subroutines and functions of types and of their components.
  subroutine procedures(n)
    integer, intent(in) :: n
    type(matrix) :: a(n), b(n)
    type(point) :: at(n), moved
    complex(wp) :: sums(n)
!$acc data create(a, b) copyout(sums, at)
!$acc parallel loop
    do i = 1, n
      do j = 1, three
        a(i)%m(j, 1) = cmplx(i, j, wp)
        a(i)%m(j, 2) = j
        a(i)%m(j, 3) = i
      end do
      call transposed(a(i), b(i))
      at(i)%x = i
      at(i)%y = 0
      at(i)%short = 1
      call add(at(i)%y, at(i)%x)
      at(i)%inside = is_inside(at(i))
    end do
!$acc parallel loop private(moved)
    do i = 1, n
      sums(i) = total_of(a(i)%m) + 3*total_of(b(i)%m) + row(b(i)%m(1, 2)) + b(i)%m(2, 1)
      moved = shifted(at(i), 0.5_wp)
      at(i) = merge(moved, at(i), moved%inside)
      if (i == 7) at(i) = point(2, real(i), inside=at(1)%x < 3, y=-1, int=3_1)
    end do
!$acc end data
!$xmp task on p(1)
    print '(a, 4es24.15, i4)', 'procedures', sum(sums), sum(at%x), sum(at%y), count(at%inside)
!$xmp end task
  end subroutine procedures

  pure subroutine transposed(from, to)
    type(matrix), intent(in) :: from
    type(matrix), intent(inout) :: to
    integer :: r, c
    do c = 1, three
      do r = 1, three
        to%m(r, c) = conjg(from%m(c, r))
      end do
    end do
  end subroutine transposed

  pure subroutine add(to, what)
    real(wp), intent(inout) :: to
    real(wp), intent(in) :: what
    to = to + 2*what
  end subroutine add

  pure logical function is_inside(a)
    type(point), intent(in) :: a
    is_inside = a%x < 10 .and. a%y >= 0
  end function is_inside

  pure function shifted(a, by) result(b)
    type(point), intent(in) :: a
    real(wp), intent(in) :: by
    type(point) :: b
    b = a
    b%x = b%x + by
  end function shifted

  pure complex(wp) function total_of(m)
    complex(wp), intent(in) :: m(three, three)
    integer :: r, c
    total_of = 0
    do c = 1, three
      do r = 1, three
        total_of = total_of + r*m(r, c)
      end do
    end do
  end function total_of

  pure complex(wp) function row(m)
    complex(wp), intent(in) :: m(three)
    row = m(1)*m(3)
  end function row
end program types
