"""Parameter identification: estimates, their uncertainty, and identifiability.

Start with `fit/identify.py`. Each folder imports only those before it: `transforms`, `experiment`
(parameters and runs), `statistics`, `data`, `starts`, `noise`, `search` (the least squares),
`intervals`, `shooting`, `result`, `prediction`, `fit`, `comparison`, `regression`, `design`.
May import `simulate` and lower layers.
"""

from ..sensors import (
    AbstractSensor as AbstractSensor,
    Accelerometer as Accelerometer,
    Attitude as Attitude,
    Delayed as Delayed,
    Gyroscope as Gyroscope,
    JointCoordinate as JointCoordinate,
    JointRate as JointRate,
    JointTorque as JointTorque,
    Position as Position,
    ReactionForce as ReactionForce,
    ReactionMoment as ReactionMoment,
)
from .comparison.compare import (
    LikelihoodRatio as LikelihoodRatio,
    ModelComparison as ModelComparison,
    compare_models as compare_models,
)
from .comparison.likelihood import Likelihood as Likelihood
from .data.alignment import TimeShift as TimeShift, find_time_shift as find_time_shift
from .data.csv import read_csv as read_csv
from .data.filtering import (
    differentiate as differentiate,
    differentiate_orientation as differentiate_orientation,
    lowpass as lowpass,
    resample as resample,
)
from .data.mcap import read_mcap as read_mcap
from .data.measurements import Measurements as Measurements
from .data.netcdf import read_netcdf as read_netcdf
from .data.read import read as read
from .data.recordings import (
    cut_run as cut_run,
    filter_run as filter_run,
    merge_runs as merge_runs,
    resample_run as resample_run,
    shift_run as shift_run,
)
from .design.design import Design as Design, design_experiment as design_experiment
from .design.excitation import Excitation as Excitation, excitation as excitation
from .design.motion_limits import MotionLimits as MotionLimits, WorkspaceBox as WorkspaceBox
from .design.trajectory import Trajectory as Trajectory, design_trajectory as design_trajectory
from .experiment.parameters import Experiment as Experiment, Parameter as Parameter
from .experiment.priors import (
    AbstractPrior as AbstractPrior,
    GaussianPrior as GaussianPrior,
    LogDetPrior as LogDetPrior,
)
from .experiment.simulation import Simulation as Simulation
from .fit.batch import BatchFit as BatchFit, identify_batch as identify_batch
from .fit.identify import identify as identify
from .intervals.posterior import Posterior as Posterior
from .intervals.profile import Profile as Profile
from .noise import (
    AbstractNoise as AbstractNoise,
    AutoRegressive as AutoRegressive,
    GaussianProcess as GaussianProcess,
    RandomWalk as RandomWalk,
)
from .regression.base_parameters import (
    BaseParameters as BaseParameters,
    base_parameters as base_parameters,
)
from .regression.consistent import (
    ConsistencyError as ConsistencyError,
    ConsistentRegression as ConsistentRegression,
    consistent_regression as consistent_regression,
)
from .regression.essential import essential_regression as essential_regression
from .regression.regression import (
    JointData as JointData,
    Regression as Regression,
    joint_data as joint_data,
    regress as regress,
    stack_joint_data as stack_joint_data,
)
from .regression.regressor import (
    describe_in_frames as describe_in_frames,
    inertial_parameters as inertial_parameters,
    parameter_labels as parameter_labels,
    regressor as regressor,
    with_inertial_parameters as with_inertial_parameters,
)
from .result.predictions import (
    FittedRun as FittedRun,
    fitted_runs as fitted_runs,
    predictions as predictions,
)
from .result.previous import Changes as Changes, EstimateChange as EstimateChange
from .result.result import Fit as Fit
from .result.side_by_side import IntervalTable as IntervalTable, interval_table as interval_table
from .result.validation import PredictedSensor as PredictedSensor, Validation as Validation
from .search.first_order import FirstOrder as FirstOrder
from .search.losses import (
    AbstractLoss as AbstractLoss,
    Cauchy as Cauchy,
    Huber as Huber,
    Squares as Squares,
)
from .search.options import IdentificationError as IdentificationError
from .sensitivity import Sensitivity as Sensitivity, sensitivity as sensitivity
from .starts.estimates import estimate_starts as estimate_starts
from .starts.parameter import start_state as start_state
from .statistics.estimate_covariance import EstimateCovariance as EstimateCovariance
from .statistics.identifiability import (
    Combination as Combination,
    Identifiability as Identifiability,
)
from .statistics.verdict import Verdict as Verdict
from .statistics.whiteness import Whiteness as Whiteness, ljung_box as ljung_box
from .transforms import (
    AbstractTransform as AbstractTransform,
    Bounded as Bounded,
    InertiaTensor as InertiaTensor,
    Known as Known,
    Orientation as Orientation,
    Positive as Positive,
    PrincipalInertia as PrincipalInertia,
    Unconstrained as Unconstrained,
)

Free = Unconstrained
