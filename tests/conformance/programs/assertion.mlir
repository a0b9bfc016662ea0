// Fails with a message of the program's own when the value is out of range.
func.func @reciprocal(%x: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %fine = arith.cmpf une, %x, %zero : f32
  cf.assert %fine, "the reciprocal of zero was asked for"
  %y = arith.divf %one, %x : f32
  return %y : f32
}
