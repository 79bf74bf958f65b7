"""What any run is: its folder, its record, the loop that asks, graded rows, a judge's replies."""
