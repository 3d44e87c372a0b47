! Coarrays: sections on both sides, images in one dimension and in two, synchronisation, post and wait.
module shared
  implicit none
  integer, parameter :: dp = kind(1d0)
  real(dp), save :: row(0:9)[*]
  integer :: wrong = 0
end module shared

program coarrays
  use shared
  implicit none
!$xmp nodes p(*)
  integer :: me, all_of, next, before, i
  integer, codimension[*] :: one
  integer :: grid(3, 4)[*], local(3, 4)
  real(dp), allocatable :: later(:)[:]
  type point
    real :: x, y
  end type point
  type(point) :: points(2)[*], mine(2)
  character(5) :: word[*]

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
  call check(sum(row(2:8:3)[before]) == 3 * before, 'a section with a step')
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
  call check(all(row(0:3) == [1, 2, 3, 4] * before) .and. row(9) == -1 .and. row(5) == me, 'a put of a section')
  call check(all(grid(2, :) == 7) .and. grid(1, 1) == 100 * me + 1, 'a put of a scalar to a section')
  call check(word == 'hello', 'characters')
  call check(later(3) == 2 * before + 1 .and. later(1) == me + 0.5_dp, 'an allocated coarray')
  sync memory

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

!$xmp post (p(next), 5)
!$xmp wait (p(before), 5)
!$xmp reduction (+: wrong)
  if (me == 1) print '(i0, a, i0, a)', all_of, ' images, ', wrong, ' wrong'
  if (wrong /= 0) error stop 1

contains

  subroutine check(right, about)
    logical, intent(in) :: right
    character(*), intent(in) :: about
    if (right) return
    wrong = wrong + 1
    print *, me, 'wrong: ', about
  end subroutine check
end program coarrays
