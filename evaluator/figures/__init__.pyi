from .frontiers import frontiers as frontiers
from .frontiers import methods as methods
from .latent import latent_curve as latent_curve
from .shapes import shapes_plot as shapes_plot
from .step_changes import progress_plot as progress_plot
from .trajectories import small_multiples as small_multiples
from .trajectories import trajectory_curve as trajectory_curve
