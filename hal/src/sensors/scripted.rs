//! The fake beside every real sensor.

use super::{
    BoardSensor, Cpu, CpuSensor, Disk, DiskSensor, Memory, MemorySensor, Pressure, PressureSensor,
    Resource, ThermalSensor, ThermalZone,
};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A sensor that gives the readings it was told, one per call, and repeats the last one for ever.
///
/// A clone is another handle on the same script, so a test can change it while the code under test
/// reads. What it is a sensor of follows from its readings' type: `ScriptedSensor<Option<Memory>>`
/// is a [`MemorySensor`], `ScriptedSensor<Vec<ThermalZone>>` a [`ThermalSensor`], and so on.
///
/// ```
/// use garret_hal::sensors::{ScriptedSensor, ThermalSensor, ThermalZone};
///
/// let zone = |celsius: i32| ThermalZone { name: "cpu".into(), millicelsius: celsius * 1_000 };
/// let heat = ScriptedSensor::new([vec![zone(50)], vec![zone(81)]]);
/// assert_eq!(heat.hottest(), Some(50_000));
/// assert_eq!(heat.hottest(), Some(81_000));
/// heat.set([vec![]]);
/// assert_eq!(heat.hottest(), None);
/// ```
#[derive(Clone, Debug)]
pub struct ScriptedSensor<T> {
    readings: Arc<Mutex<VecDeque<T>>>,
}

impl<T: Clone + Default> ScriptedSensor<T> {
    /// The readings to give in order; an empty script gives "no reading".
    pub fn new(readings: impl IntoIterator<Item = T>) -> Self {
        Self { readings: Arc::new(Mutex::new(readings.into_iter().collect())) }
    }

    /// Forgets the script and gives `readings` from now on.
    pub fn set(&self, readings: impl IntoIterator<Item = T>) {
        *self.readings() = readings.into_iter().collect();
    }

    fn next(&self) -> T {
        let mut readings = self.readings();
        let next =
            if readings.len() > 1 { readings.pop_front() } else { readings.front().cloned() };
        next.unwrap_or_default()
    }

    fn readings(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemorySensor for ScriptedSensor<Option<Memory>> {
    fn memory(&self) -> Option<Memory> {
        self.next()
    }
}

impl ThermalSensor for ScriptedSensor<Vec<ThermalZone>> {
    fn zones(&self) -> Vec<ThermalZone> {
        self.next()
    }
}

/// Plays one script for all resources.
impl PressureSensor for ScriptedSensor<Option<Pressure>> {
    fn pressure(&self, _resource: Resource) -> Option<Pressure> {
        self.next()
    }
}

/// Plays one script for all paths.
impl DiskSensor for ScriptedSensor<Option<Disk>> {
    fn disk(&self, _path: &Path) -> Option<Disk> {
        self.next()
    }
}

impl CpuSensor for ScriptedSensor<Cpu> {
    fn cpu(&self) -> Cpu {
        self.next()
    }
}

impl BoardSensor for ScriptedSensor<Option<String>> {
    fn board(&self) -> Option<String> {
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_script_has_no_reading() {
        let script: ScriptedSensor<Option<Memory>> = ScriptedSensor::new([]);
        assert_eq!(script.memory(), None);
    }

    #[test]
    fn handles_share_the_script() {
        let script = ScriptedSensor::new([Some("a".to_owned()), Some("b".to_owned())]);
        let other = script.clone();
        assert_eq!(other.board().as_deref(), Some("a"));
        assert_eq!(script.board().as_deref(), Some("b"));
        script.set([Some("c".to_owned())]);
        assert_eq!(other.board().as_deref(), Some("c"));
    }

    #[test]
    fn every_sensor_has_a_fake() {
        let pressure = Pressure { avg10: 1.0, avg60: 2.0 };
        assert_eq!(ScriptedSensor::new([Some(pressure)]).pressure(Resource::Io), Some(pressure));
        let disk = Disk { total: 2, available: 1 };
        assert_eq!(ScriptedSensor::new([Some(disk)]).disk(Path::new("/")), Some(disk));
        let cpu = Cpu { logical: 4, physical: Some(2) };
        assert_eq!(ScriptedSensor::new([cpu]).cpu(), cpu);
    }
}
